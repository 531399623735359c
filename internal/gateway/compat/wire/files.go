// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"mime"
	"path"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
)

// Text is a part of a message.
func Text(text string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartText, Text: &text}
}

// Image is a part of a message: an image at a URL, or in a data URL.
func Image(param, url string) (v1beta1.MessagePart, error) {
	return file(param, "image", url, "image/png")
}

// File is a part of a message: a file in a data URL.
func File(param, name, url string) (v1beta1.MessagePart, error) {
	return file(param, baseOf(name), url, "application/pdf")
}

// Data is a part of a message: a file in place, in base64.
func Data(name, mediaType, content string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartFile,
		File: &v1beta1.MessageFile{Name: baseOf(name), MediaType: strings.ToLower(mediaType), Data: content}}
}

// NoFileInResult stands for a file in the result of a call.
func NoFileInResult(kind string) string {
	return "(a file of type " + kind + ", which results of calls do not hold)"
}

// baseOf is the last element of a path, or a default name.
func baseOf(name string) string {
	if name = path.Base(strings.TrimSpace(name)); name == "." || name == "/" {
		return "file"
	}
	return name
}

func file(param, name, url, usual string) (v1beta1.MessagePart, error) {
	f := &v1beta1.MessageFile{Name: name}
	data, inPlace := strings.CutPrefix(url, "data:")
	if !inPlace {
		f.URL = url
		f.MediaType = usual
		if byName, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(withoutQuery(url)))); err == nil {
			f.MediaType = byName
		}
		return v1beta1.MessagePart{Type: v1beta1.PartFile, File: f}, nil
	}
	kind, content, ok := strings.Cut(data, ";base64,")
	if !ok {
		return v1beta1.MessagePart{}, Invalid(param, "the data URL is not of the form data:TYPE;base64,CONTENT")
	}
	f.MediaType, f.Data = strings.ToLower(kind), content
	return v1beta1.MessagePart{Type: v1beta1.PartFile, File: f}, nil
}

func withoutQuery(url string) string {
	before, _, _ := strings.Cut(url, "?")
	return before
}

// KindFunction is the type of a tool that its client runs.
const KindFunction = "function"

// Function is a tool that a client offers.
type Function struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters are a JSON schema, which may be empty.
	Parameters json.RawMessage `json:"parameters"`
}

// Tools converts the tools that a client offers; nil if the request has no such field. Of returns the type of a tool
// and its function.
func Tools[T any](offered []T, of func(*T) (kind string, f *Function), omitted map[string]bool) ([]v1beta1.ClientTool,
	error) {
	if offered == nil {
		return nil, nil
	}
	tools := []v1beta1.ClientTool{}
	for i := range offered {
		kind, f := of(&offered[i])
		param := fmt.Sprintf("tools[%d]", i)
		switch {
		case omitted[kind]:
			continue
		case kind != KindFunction:
			return nil, Unsupported(param, "tools of type %s cannot be honoured: functions alone", kind)
		}
		tool, err := f.tool(param)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

func (f *Function) tool(param string) (v1beta1.ClientTool, error) {
	tool := v1beta1.ClientTool{Name: f.Name, Description: f.Description}
	if utf8.RuneCountInString(f.Description) > v1beta1.MaxToolDescription {
		return tool, Invalid(param, "the description of function %s has more than %d characters", f.Name,
			v1beta1.MaxToolDescription)
	}
	if IsSet(f.Parameters) {
		var object map[string]any
		if json.Unmarshal(f.Parameters, &object) != nil {
			return tool, Invalid(param, "the parameters of function %s are no JSON schema of an object", f.Name)
		}
		tool.InputSchema = &runtime.RawExtension{Raw: f.Parameters}
	}
	return tool, nil
}
