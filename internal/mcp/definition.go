// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/jsonschema"
	"parley.dev/parley/internal/text/printable"
)

const (
	// maxDefinition is how many bytes of JSON the definition of a tool has at most: 64 KiB.
	maxDefinition = 64 << 10
	// maxDefinitions is how many all tools of a server have together: 256 KiB.
	maxDefinitions = 256 << 10
)

// definition is what a server says of a tool.
type definition struct {
	// own is the tool's name at its server, name the one that the model calls.
	own, name   string
	description string
	schema      map[string]any
	// hash is of all that, and of the schema of results.
	hash string
	// size is how many bytes of JSON it has.
	size int
	// readOnly is whether the server says that the tool only reads, repeatable whether it says that or that the tool does
	// nothing twice.
	readOnly, repeatable bool
	// inHeaders is whether arguments are to be sent in headers, too, which the protocol's library does for a session that
	// has seen the list.
	inHeaders bool
}

// described is what is read of a definition.
type described struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  struct {
		ReadOnlyHint   bool `json:"readOnlyHint"`
		IdempotentHint bool `json:"idempotentHint"`
	} `json:"annotations"`
}

// read reads a definition. problem is what is wrong with it; empty if nothing is.
func (t *described) read(raw json.RawMessage) (problem string) {
	err := json.Unmarshal(raw, t)
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case ok && wrong.Field != "":
		return fmt.Sprintf("its %s is of the wrong type: %s", wrong.Field, wrong.Value)
	case err != nil || isNull(raw):
		return "it is not an object"
	case t.Name == "":
		return "it has no name"
	}
	return ""
}

// define makes a definition of what the server says. Characters that hide text from people are left out of the
// description; secrets are scrubbed. problem is why the tool cannot be offered; empty if it can.
func define(server string, given json.RawMessage, secrets scrubber) (d definition, problem string) {
	var tool described
	if problem = tool.read(given); problem != "" {
		return d, problem
	}
	input, _ := decode(tool.InputSchema) // It has none, if that fails: the whole was decoded.
	output, _ := decode(tool.OutputSchema)
	raw, err := json.Marshal([]any{tool.Name, tool.Description, input, output})
	if err != nil {
		return d, "its definition is no JSON"
	}
	if len(raw) > maxDefinition {
		return d, fmt.Sprintf("its definition has more than %d KiB", maxDefinition>>10)
	}
	sum := sha256.Sum256(raw)
	d = definition{
		own: tool.Name, name: offeredName(server, tool.Name), size: len(raw), hash: hex.EncodeToString(sum[:])[:32],
		description: printable.Text(secrets.scrub(tool.Description)), inHeaders: bytes.Contains(raw, []byte("x-mcp-header")),
		readOnly:   tool.Annotations.ReadOnlyHint,
		repeatable: tool.Annotations.ReadOnlyHint || tool.Annotations.IdempotentHint,
	}
	if tool.InputSchema == nil {
		d.schema = map[string]any{"type": "object"}
		return d, ""
	}
	d.schema, problem = argumentsOf(input, secrets)
	return d, problem
}

// argumentsOf is the schema of a tool's arguments.
func argumentsOf(input any, secrets scrubber) (arguments map[string]any, problem string) {
	raw, err := json.Marshal(input)
	if err != nil {
		return nil, "the schema of its arguments is no JSON"
	}
	value, _ := decode([]byte(secrets.scrub(string(raw)))) // It is no object, if that fails.
	arguments, ok := value.(map[string]any)
	if !ok {
		return nil, "the schema of its arguments is no object"
	}
	if _, ok := arguments["type"]; !ok {
		arguments["type"] = "object"
	}
	if arguments["type"] != "object" {
		return nil, "the schema of its arguments is that of no object"
	}
	checked, err := json.Marshal(arguments)
	if err == nil {
		err = jsonschema.Check(string(checked))
	}
	if err != nil {
		return nil, "its arguments: " + err.Error()
	}
	jsonschema.WithNumbers(arguments, jsonschema.AsWritten)
	return arguments, ""
}

// selection is what is offered of a server's tools.
type selection struct {
	definitions []definition
	// left are those that are left out although the filter lets them through, and why.
	left []string
}

// choose offers the tools that the filter lets through, sorted by name, as many as fit.
func choose(server *v1alpha1.MCPServer, all []*sdk.Tool, secrets scrubber) (s selection) {
	slices.SortStableFunc(all, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	total, taken := 0, map[string]bool{}
	for _, tool := range all {
		if !passes(server.Tools, tool.Name) {
			continue
		}
		d, problem := define(server.Name, raw(tool.Meta), secrets)
		switch {
		case problem != "":
		case taken[d.name]:
			problem = "another tool has its name"
		case len(s.definitions) == v1alpha1.MaxMCPServerTools:
			problem = fmt.Sprintf("a server has at most %d; see tools.allow", v1alpha1.MaxMCPServerTools)
		case total+d.size > maxDefinitions:
			problem = fmt.Sprintf("the tools of a server have at most %d KiB together", maxDefinitions>>10)
		}
		if problem != "" {
			s.left = append(s.left, fmt.Sprintf("%.60q (%s)", printable.Line(secrets.scrub(tool.Name)), problem))
			continue
		}
		total, taken[d.name] = total+d.size, true
		s.definitions = append(s.definitions, d)
	}
	return s
}

// note names the tools that are left out, the first ones if they are many; empty if none is.
func (s selection) note() string {
	if len(s.left) == 0 {
		return ""
	}
	return clip.Ellipsis(fmt.Sprintf("%d of its tools cannot be offered: %s", len(s.left), strings.Join(s.left, ", ")),
		maxWords)
}
