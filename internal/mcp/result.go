// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

const (
	// maxResult is how many bytes of text are kept of a result, before the bound of the model's context: 256 KiB.
	maxResult = 256 << 10
	// maxImage is how many bytes an image has at most that comes with a result: one ChatMessage holds it, in base64.
	maxImage = 512 << 10
	// maxImages is how many images of a result are kept.
	maxImages = 8
)

// Attached ends what a result says of an image that is beside it.
const Attached = " is attached]"

// images are the types of images that models take, and how files of them end.
var images = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

// reading makes of a result what the model reads, and puts its images beside it.
type reading struct {
	secrets scrubber
	call    tools.Call
	images  int
}

// text is what the result says. What stands in the structured content and not in a text is put behind it as JSON.
func (r *reading) text(result *sdk.CallToolResult) string {
	var said []string
	for _, content := range result.Content {
		if text := r.of(content); text != "" {
			said = append(said, text)
		}
	}
	if extra := structured(result, said); extra != "" {
		said = append(said, extra)
	}
	switch {
	case len(said) > 0:
		return r.secrets.scrub(strings.Join(said, "\n"))
	case result.IsError:
		return "the tool failed, and did not say why"
	}
	return "The call is done. Its result is empty."
}

func (r *reading) of(content sdk.Content) string {
	switch c := content.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return r.image(c.Data)
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio of %d bytes was left out: models do not get audio]", len(c.Data))
	case *sdk.ResourceLink:
		return strings.TrimSpace(fmt.Sprintf("[resource %s: %s] %s", c.URI, c.Name, c.Description))
	case *sdk.EmbeddedResource:
		return r.resource(c.Resource)
	}
	return "[content of an unknown type was left out]"
}

func (r *reading) resource(c *sdk.ResourceContents) string {
	switch {
	case c == nil:
		return ""
	case len(c.Blob) == 0:
		return fmt.Sprintf("[resource %s]\n%s", c.URI, c.Text)
	case images[http.DetectContentType(c.Blob)] != "":
		return fmt.Sprintf("[resource %s]\n%s", c.URI, r.image(c.Blob))
	}
	return fmt.Sprintf("[resource %s: %d bytes that are no text and no image were left out]", c.URI, len(c.Blob))
}

// image puts an image beside the result, and names it. Its type is that of its content, whatever the server says.
func (r *reading) image(data []byte) string {
	kind := http.DetectContentType(data)
	left := ""
	switch {
	case images[kind] == "":
		left = "it is no PNG, JPEG, GIF or WebP"
	case len(data) > maxImage:
		left = fmt.Sprintf("it has more than %d KiB", maxImage>>10)
	case r.images == maxImages:
		left = fmt.Sprintf("a result has at most %d", maxImages)
	}
	if left == "" {
		name := fmt.Sprintf("%s-%d.%s", r.call.ID, r.images+1, images[kind])
		file := v1alpha1.MessageFile{Name: name, MediaType: kind, Data: base64.StdEncoding.EncodeToString(data)}
		if r.call.Attach(file) {
			r.images++
			return "[image " + name + Attached
		}
		left = "the results of this reply leave no room for it"
	}
	return fmt.Sprintf("[an image of %d bytes was left out: %s]", len(data), left)
}

// structured is the structured content as JSON, unless one of the texts says the same.
func structured(result *sdk.CallToolResult, said []string) string {
	if result.StructuredContent == nil {
		return ""
	}
	for _, text := range said {
		var value any
		if json.Unmarshal([]byte(text), &value) == nil && reflect.DeepEqual(value, result.StructuredContent) {
			return ""
		}
	}
	text, err := tools.Encode(result.StructuredContent)
	if err != nil {
		return ""
	}
	return text
}
