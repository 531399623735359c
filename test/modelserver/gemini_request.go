// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/genai"
)

// Gemini is POST /v1beta/models/{model}:streamGenerateContent.
const Gemini Protocol = "gemini"

// geminiToolName is what the reference of function declarations allows.
var geminiToolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

// geminiRequest is the body of a request. The provider refuses a name that it does not know.
type geminiRequest struct {
	Contents          []*genai.Content `json:"contents"`
	SystemInstruction *genai.Content   `json:"systemInstruction"`
	GenerationConfig  struct {
		genai.GenerationConfig
		// MaxOutputTokens replaces the one of the library, where 0 is none.
		MaxOutputTokens *int32 `json:"maxOutputTokens"`
	} `json:"generationConfig"`
	Tools          []*genai.Tool          `json:"tools"`
	ToolConfig     *genai.ToolConfig      `json:"toolConfig"`
	SafetySettings []*genai.SafetySetting `json:"safetySettings"`
	CachedContent  string                 `json:"cachedContent"`
}

// geminiDialect is the protocol for one request: model and method are in its path.
type geminiDialect struct {
	model, method, alt string
}

// newGemini reads the last element of the path, which is "model:method".
func newGemini(r *http.Request) dialect {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	return geminiDialect{model: model, method: method, alt: r.URL.Query().Get("alt")}
}

func (geminiDialect) protocol() Protocol { return Gemini }

func (d geminiDialect) decode(body []byte, header http.Header) (*request, *apiError) {
	switch {
	case d.method != "streamGenerateContent":
		return nil, &apiError{status: http.StatusNotFound, message: "Requested entity was not found."}
	case d.alt != "sse":
		return nil, refuse("The scripted model streams server-sent events alone: ask for them with alt=sse.")
	case header.Get("X-Goog-Api-Key") == "":
		refused := d.wrongKey("")
		return nil, &refused
	}
	var in geminiRequest
	reader := json.NewDecoder(bytes.NewReader(body))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&in); err != nil {
		return nil, refuse("Invalid JSON payload received. %v", err)
	}
	if reader.Decode(&struct{}{}) != io.EOF {
		return nil, refuse("Invalid JSON payload received. Unexpected token.")
	}
	if err := in.validate(d.model); err != nil {
		return nil, err
	}
	return in.request(d.model), nil
}

func (in geminiRequest) request(model string) *request {
	r := &request{protocol: Gemini, model: model, stream: true, entries: len(in.Contents)}
	if in.SystemInstruction != nil {
		r.turns = append(r.turns, turn{kind: turnSystem, text: geminiText(in.SystemInstruction)})
	}
	for _, c := range in.Contents {
		r.turns = append(r.turns, geminiTurns(c)...)
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			r.tools = append(r.tools, f.Name)
		}
	}
	return r
}

func (in geminiRequest) validate(model string) *apiError {
	if len(in.Contents) == 0 {
		return refuse("* GenerateContentRequest.contents: contents is not specified\n")
	}
	if limit := in.GenerationConfig.MaxOutputTokens; limit != nil && *limit < 1 {
		return refuse("Unable to submit request because it has a maxOutputTokens value of %d but the supported range is "+
			"from 1 (inclusive).", *limit)
	}
	if err := in.validateTools(); err != nil {
		return err
	}
	for i, c := range in.Contents {
		if c.Role != "user" && c.Role != "model" && (c.Role != "" || len(in.Contents) > 1) {
			return refuse("Please use a valid role: user, model.")
		}
		if err := validateGemini(c, i, model); err != nil {
			return err
		}
	}
	if in.Contents[len(in.Contents)-1].Role == "model" {
		return refuse("Please ensure that multiturn requests end with a user role or a function response.")
	}
	if err := geminiPairing(in.Contents); err != nil {
		return err
	}
	return geminiSignatures(model, in.Contents)
}

func (in geminiRequest) validateTools() *apiError {
	seen := map[string]bool{}
	for i, t := range in.Tools {
		for j, f := range t.FunctionDeclarations {
			at := fmt.Sprintf("tools[%d].function_declarations[%d]", i, j)
			if !geminiToolName.MatchString(f.Name) {
				return refuse("* GenerateContentRequest.%s.name: Invalid function name. Must start with a letter or an "+
					"underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with "+
					"a maximum length of 64.\n", at)
			}
			if seen[f.Name] {
				return refuse("Duplicate function declaration found: %s", f.Name)
			}
			seen[f.Name] = true
		}
	}
	return nil
}

func geminiText(c *genai.Content) string {
	var text strings.Builder
	for _, p := range c.Parts {
		if !p.Thought {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}
