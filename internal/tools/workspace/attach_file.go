// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/protocol"
)

// maxAttached bounds the bytes of an attached file: one ChatMessage holds it, in base64.
const maxAttached = 512 << 10

type attachFile struct{ *common }

type attachFileResult struct {
	Name      string `json:"name" doc:"The name that people see."`
	Size      int    `json:"size" doc:"Its bytes."`
	MediaType string `json:"media_type" doc:"What it is, by its content."`
}

func (t attachFile) Definition() tools.Definition {
	return tools.Definition{
		Name: "attach_file",
		Description: "Attaches a file of the workspace to the conversation, so that people get it, and you see it if it is " +
			"an image or a PDF. Call it alone, for a file that is worth showing.",
		InputSchema: arguments.Object(map[string]any{
			"path": pathArgument,
			"name": arguments.Text(0, 255, "Its name for people. Default: that in the workspace."),
		}, "path"),
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: t.hasWorkspace, Exclusive: true,
			Repeatable: true, AttachesFile: true, NeedsWorkspace: true},
		Reference: tools.Reference{
			Offered: offered, Result: attachFileResult{},
			Errors: []string{
				"There is no such file, it is empty, a directory, a device or a pipe, or it leads out of the workspace's " +
					"directory.",
				"It was not called alone.",
			},
			Limits: []string{fmt.Sprintf("%d KiB: the ChatMessage with the result holds the file, as a part of type File.",
				maxAttached>>10)},
		},
	}
}

func (t attachFile) Run(ctx context.Context, call tools.Call) (string, error) {
	var args struct{ Path, Name string }
	workspace, err := t.begin(ctx, call, t.Definition().InputSchema, &args)
	if err != nil {
		return "", err
	}
	content, err := workspace.Content(ctx, args.Path, maxAttached)
	switch {
	case isCode(err, protocol.TooLarge):
		return "", fmt.Errorf("%.200q is too large: a file may have %d KiB", args.Path, maxAttached>>10)
	case err != nil:
		return "", Problem(ctx, err)
	case len(content) == 0:
		return "", fmt.Errorf("%.200q is empty", args.Path)
	}
	file := v1beta1.MessageFile{Name: nameOf(cmp.Or(args.Name, args.Path)), MediaType: mediaTypeOf(content),
		Data: base64.StdEncoding.EncodeToString(content)}
	if file.Name == "" {
		return "", errors.New("give a name: that of the file in the workspace cannot be shown")
	}
	if !call.Attach(file) {
		return "", errors.New("the message with the result has no room for the file")
	}
	return tools.Encode(attachFileResult{Name: file.Name, Size: len(content), MediaType: file.MediaType})
}

// maxFileName bounds the bytes of the name of an attached file.
const maxFileName = 255

// nameOf is the name that people see; empty: the path has none.
func nameOf(file string) string {
	name := path.Base(path.Clean(printable.Line(file)))
	if name == "." || name == ".." || name == "/" {
		return ""
	}
	return clip.Bytes(strings.ReplaceAll(name, `\`, "_"), maxFileName)
}

// mediaTypeOf detects the media type of a content, without parameters.
func mediaTypeOf(content []byte) string {
	mediaType, _, _ := strings.Cut(http.DetectContentType(content), ";")
	return mediaType
}
