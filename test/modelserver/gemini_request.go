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
)

// Gemini is POST /v1beta/models/{model}:generateContent and :streamGenerateContent.
const Gemini Protocol = "gemini"

// geminiToolName is what the reference of function declarations allows.
var geminiToolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

// geminiRequest has all fields of the reference: the provider refuses a name that it does not know.
type geminiRequest struct {
	Contents          []geminiContent `json:"contents"`
	SystemInstruction *geminiContent  `json:"systemInstruction"`
	GenerationConfig  *geminiConfig   `json:"generationConfig"`
	Tools             []geminiTool    `json:"tools"`
	ToolConfig        json.RawMessage `json:"toolConfig"`
	SafetySettings    json.RawMessage `json:"safetySettings"`
	CachedContent     string          `json:"cachedContent"`
}

type geminiConfig struct {
	MaxOutputTokens    *int            `json:"maxOutputTokens"`
	CandidateCount     *int            `json:"candidateCount"`
	Temperature        *float64        `json:"temperature"`
	TopP               *float64        `json:"topP"`
	TopK               *float64        `json:"topK"`
	PresencePenalty    *float64        `json:"presencePenalty"`
	FrequencyPenalty   *float64        `json:"frequencyPenalty"`
	Seed               *int            `json:"seed"`
	StopSequences      []string        `json:"stopSequences"`
	ResponseMimeType   string          `json:"responseMimeType"`
	ResponseSchema     json.RawMessage `json:"responseSchema"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
	ThinkingConfig     *struct {
		IncludeThoughts bool   `json:"includeThoughts"`
		ThinkingBudget  *int   `json:"thinkingBudget"`
		ThinkingLevel   string `json:"thinkingLevel"`
	} `json:"thinkingConfig"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text             *string         `json:"text,omitempty"`
	Thought          bool            `json:"thought,omitempty"`
	ThoughtSignature []byte          `json:"thoughtSignature,omitempty"`
	FunctionCall     *geminiCall     `json:"functionCall,omitempty"`
	FunctionResponse *geminiResponse `json:"functionResponse,omitempty"`
	InlineData       *geminiFile     `json:"inlineData,omitempty"`
	FileData         *geminiFile     `json:"fileData,omitempty"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type geminiResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response,omitempty"`
}

type geminiTool struct {
	FunctionDeclarations []struct {
		Name                 string          `json:"name"`
		Description          string          `json:"description"`
		Parameters           *geminiSchema   `json:"parameters"`
		ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
	} `json:"functionDeclarations"`
	GoogleSearch  json.RawMessage `json:"googleSearch"`
	CodeExecution json.RawMessage `json:"codeExecution"`
}

type geminiSchema struct {
	Type        string                   `json:"type"`
	Description string                   `json:"description"`
	Format      string                   `json:"format"`
	Nullable    *bool                    `json:"nullable"`
	Enum        []string                 `json:"enum"`
	Required    []string                 `json:"required"`
	Items       *geminiSchema            `json:"items"`
	Properties  map[string]*geminiSchema `json:"properties"`
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
	stream := d.method == "streamGenerateContent"
	switch {
	case !stream && d.method != "generateContent":
		return nil, &apiError{status: http.StatusNotFound, message: "Requested entity was not found."}
	case stream && d.alt != "sse":
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
	return in.request(d.model, stream), nil
}

func (in geminiRequest) request(model string, stream bool) *request {
	r := &request{protocol: Gemini, model: model, stream: stream, entries: len(in.Contents)}
	if in.SystemInstruction != nil {
		r.turns = append(r.turns, turn{kind: turnSystem, text: in.SystemInstruction.text()})
	}
	for _, c := range in.Contents {
		r.turns = append(r.turns, c.turns()...)
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
	if c := in.GenerationConfig; c != nil && c.MaxOutputTokens != nil && *c.MaxOutputTokens < 1 {
		return refuse("Unable to submit request because it has a maxOutputTokens value of %d but the supported range is "+
			"from 1 (inclusive).", *c.MaxOutputTokens)
	}
	if err := in.validateTools(); err != nil {
		return err
	}
	for i, c := range in.Contents {
		if c.Role != "user" && c.Role != "model" && (c.Role != "" || len(in.Contents) > 1) {
			return refuse("Please use a valid role: user, model.")
		}
		if err := c.validate(i, model); err != nil {
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
			if err := f.Parameters.validate(at + ".parameters"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *geminiSchema) validate(at string) *apiError {
	if s == nil {
		return nil
	}
	switch s.Type {
	case "STRING", "NUMBER", "INTEGER", "BOOLEAN", "OBJECT", "NULL":
	case "ARRAY":
		if s.Items == nil {
			return refuse("* GenerateContentRequest.%s.items: missing field.\n", at)
		}
		return s.Items.validate(at + ".items")
	default:
		return refuse("Invalid value at '%s.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), %q", at,
			s.Type)
	}
	for name, property := range s.Properties {
		if err := property.validate(at + ".properties[" + name + "]"); err != nil {
			return err
		}
	}
	return nil
}

func (c geminiContent) text() string {
	var text strings.Builder
	for _, p := range c.Parts {
		if p.Text != nil && !p.Thought {
			text.WriteString(*p.Text)
		}
	}
	return text.String()
}
