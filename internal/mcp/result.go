// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
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

// answer is what a server answers to a call. Each part is read for itself: a part that is wrong loses no other.
type answer struct {
	Content           json.RawMessage `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           lenientText     `json:"isError"`
}

// readAnswer reads a result. What is no object is content alone.
func readAnswer(raw json.RawMessage) (a answer) {
	if json.Unmarshal(raw, &a) != nil {
		return answer{Content: raw}
	}
	return a
}

func (a *answer) failed() bool { return strings.EqualFold(string(a.IsError), "true") }

// blocks are the parts of the content. What is no list is its only part.
func (a *answer) blocks() (all []json.RawMessage) {
	switch {
	case isNull(a.Content):
		return nil
	case json.Unmarshal(a.Content, &all) != nil:
		return []json.RawMessage{a.Content}
	}
	return all
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// text is what the result says. What stands in the structured content and not in a text is put behind it as JSON.
func (r *reading) text(a *answer) string {
	var said []string
	for _, raw := range a.blocks() {
		if text := r.block(raw); text != "" {
			said = append(said, text)
		}
	}
	if !isNull(a.StructuredContent) && !repeated(a, said) {
		said = append(said, again(a.StructuredContent))
	}
	switch {
	case len(said) > 0:
		return r.secrets.scrub(strings.Join(said, "\n"))
	case a.failed():
		return "the tool failed, and did not say why"
	}
	return "The call is done. Its result is empty."
}

// block is a part of the content, with the members that are read of any type.
type block struct {
	Type        lenientText     `json:"type"`
	Text        lenientText     `json:"text"`
	Data        lenientData     `json:"data"`
	Blob        lenientData     `json:"blob"`
	Resource    json.RawMessage `json:"resource"`
	URI         lenientText     `json:"uri"`
	Name        lenientText     `json:"name"`
	Description lenientText     `json:"description"`
}

// block is what a part of the content says, or why it was left out.
func (r *reading) block(raw json.RawMessage) string {
	var b block
	switch {
	case isNull(raw):
		return "[content was left out: it is null]"
	case json.Unmarshal(raw, &b) != nil:
		var text lenientText
		_ = text.UnmarshalJSON(raw) // It takes all values.
		return string(text)
	}
	switch b.Type {
	case "text":
		return string(b.Text)
	case "image":
		return r.image(b.Data)
	case "audio":
		return audio(b.Data)
	case "resource_link":
		return strings.TrimSpace(fmt.Sprintf("[resource %s: %s] %s", b.URI, b.Name, b.Description))
	case "resource":
		return r.resource(b.Resource)
	case "":
		if b.Text != "" {
			return string(b.Text)
		}
		return "[content was left out: it has no type]"
	}
	return fmt.Sprintf("[content of type %q was left out: its type is unknown]",
		clip.Ellipsis(printable.Line(string(b.Type)), maxType))
}

// maxType is how many bytes of an unknown type are told.
const maxType = 60

func audio(data lenientData) string {
	if data.invalid {
		return "[audio was left out: its data is not base64]"
	}
	return fmt.Sprintf("[audio of %d bytes was left out: models do not get audio]", len(data.bytes))
}

func (r *reading) resource(raw json.RawMessage) string {
	var c block
	switch {
	case isNull(raw) || json.Unmarshal(raw, &c) != nil:
		return "[a resource was left out: it is not an object]"
	case c.Blob.invalid:
		return fmt.Sprintf("[resource %s was left out: its data is not base64]", c.URI)
	case len(c.Blob.bytes) == 0:
		return fmt.Sprintf("[resource %s]\n%s", c.URI, c.Text)
	case images[http.DetectContentType(c.Blob.bytes)] != "":
		return fmt.Sprintf("[resource %s]\n%s", c.URI, r.image(c.Blob))
	}
	return fmt.Sprintf("[resource %s: %d bytes that are no text and no image were left out]", c.URI, len(c.Blob.bytes))
}

// image puts an image beside the result, and names it. Its type is that of its content, whatever the server says.
func (r *reading) image(given lenientData) string {
	if given.invalid {
		return "[an image was left out: its data is not base64]"
	}
	data := given.bytes
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

// repeated reports whether the content says all that the structured content does. Servers repeat it as JSON, or the
// value of its only member: as it is, as JSON, or each element of it as a text of its own.
func repeated(a *answer, said []string) bool {
	structured, err := decode(a.StructuredContent)
	if err != nil || says(said, structured) {
		return true
	}
	members, ok := structured.(map[string]any)
	if !ok || len(members) != 1 {
		return false
	}
	content, _ := decode(a.Content)
	for _, member := range members {
		return says(said, member) || inTurn(said, member) || same(content, member)
	}
	return false
}

// says reports whether one of the texts is the value, or its JSON.
func says(said []string, value any) bool {
	return slices.ContainsFunc(said, func(text string) bool { return is(text, value) })
}

// inTurn reports whether the texts are the elements of the value.
func inTurn(said []string, value any) bool {
	elements, ok := value.([]any)
	return ok && slices.EqualFunc(said, elements, is)
}

func is(text string, value any) bool {
	if value == text {
		return true
	}
	decoded, err := decode([]byte(text))
	return err == nil && same(decoded, value)
}
