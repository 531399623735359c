// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/jsonschema"
	"parley.dev/parley/internal/text/printable"
)

const (
	// maxDefinition is the size of a tool's definition in JSON, maxDefinitions that of all tools of a server.
	maxDefinition, maxDefinitions = 64 << 10, 256 << 10
	// maxName is how many characters a tool's name may have, as OpenAI and Anthropic take it.
	maxName = 64
	// nameHash is how many hexadecimal digits of its hash end a changed name.
	nameHash = 8
)

// definition is a tool of a server.
type definition struct {
	// own is the tool's name at its server, name the one that the model calls.
	own, name   string
	description string
	schema      map[string]any
	// hash is of all that, and of the schema of results.
	hash string
	// size is that of the JSON.
	size int
	// readOnly and repeatable are hints of the server: that the tool only reads, and that it may be called again.
	readOnly, repeatable bool
	// inHeaders means that arguments are also sent in headers. The protocol's library does so in a session that has listed
	// the tools.
	inHeaders bool
}

// serverDefinition is what is read of a definition.
type serverDefinition struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  struct {
		ReadOnlyHint   bool `json:"readOnlyHint"`
		IdempotentHint bool `json:"idempotentHint"`
	} `json:"annotations"`
}

// define decodes a definition. It removes hidden text from the description, and secrets. problem is why the tool cannot
// be offered; empty if it can.
func define(server string, definitionJSON json.RawMessage, secrets scrubber) (d definition, problem string) {
	var tool serverDefinition
	err := json.Unmarshal(definitionJSON, &tool)
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case ok && mismatch.Field != "":
		return d, fmt.Sprintf("its %s is of the wrong type: %s", mismatch.Field, mismatch.Value)
	case err != nil || isNull(definitionJSON):
		return d, "it is not an object"
	case tool.Name == "":
		return d, "it has no name"
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
		own: tool.Name, name: offeredName(server, tool.Name), size: len(raw), hash: fmt.Sprintf("%x", sum[:16]),
		description: printable.Text(secrets.scrub(tool.Description)), inHeaders: bytes.Contains(raw, []byte("x-mcp-header")),
		readOnly:   tool.Annotations.ReadOnlyHint,
		repeatable: tool.Annotations.ReadOnlyHint || tool.Annotations.IdempotentHint,
	}
	if tool.InputSchema == nil {
		d.schema = map[string]any{"type": "object"}
		return d, ""
	}
	d.schema, problem = argumentsSchema(input, secrets)
	return d, problem
}

// argumentsSchema checks the schema of a tool's arguments.
func argumentsSchema(input any, secrets scrubber) (arguments map[string]any, problem string) {
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

// selection has the tools of a server that are offered.
type selection struct {
	definitions []definition
	// omitted are those that the filter passes but that cannot be offered, with the reasons.
	omitted []string
}

// choose selects the tools that the filter passes, sorted by name, within the limits.
func choose(server *v1beta1.MCPServer, all []*sdk.Tool, secrets scrubber) (s selection) {
	slices.SortStableFunc(all, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	total, names := 0, map[string]bool{}
	for _, tool := range all {
		if !passes(server.Tools, tool.Name) {
			continue
		}
		d, problem := define(server.Name, raw(tool.Meta), secrets)
		switch {
		case problem != "":
		case names[d.name]:
			problem = "another tool has its name"
		case len(s.definitions) == v1beta1.MaxMCPServerTools:
			problem = fmt.Sprintf("a server has at most %d; see tools.allow", v1beta1.MaxMCPServerTools)
		case total+d.size > maxDefinitions:
			problem = fmt.Sprintf("the tools of a server have at most %d KiB together", maxDefinitions>>10)
		}
		if problem != "" {
			s.omitted = append(s.omitted, fmt.Sprintf("%.60q (%s)", printable.Line(secrets.scrub(tool.Name)), problem))
			continue
		}
		total, names[d.name] = total+d.size, true
		s.definitions = append(s.definitions, d)
	}
	return s
}

// note names the omitted tools, the first ones if they are many; empty if there are none.
func (s selection) note() string {
	if len(s.omitted) == 0 {
		return ""
	}
	return clip.Ellipsis(fmt.Sprintf("%d of its tools cannot be offered: %s", len(s.omitted),
		strings.Join(s.omitted, ", ")), maxWords)
}

// passes reports whether the filter passes the tool of that name; nil passes all.
func passes(filter *v1beta1.MCPToolFilter, name string) bool {
	return filter == nil || (len(filter.Allow) == 0 || toolpolicy.Matches(filter.Allow, name)) &&
		!toolpolicy.Matches(filter.Deny, name)
}

var (
	// invalidInName are characters that names of tools cannot have.
	invalidInName = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	// hashSuffix ends changed names.
	hashSuffix = regexp.MustCompile(`_[0-9a-f]{8}$`)
)

// offeredName is what the model calls a tool: SERVER__TOOL. A name that is invalid, too long, or looks like a changed
// one is changed: invalid characters become _, and the name is cut and ends with _ and a hash of the tool's own name.
// So a name depends only on those of its server and tool, and no two tools share one.
func offeredName(server, tool string) string {
	name := server + toolpolicy.ServerSeparator + tool
	if tool != "" && len(name) <= maxName && !invalidInName.MatchString(tool) && !hashSuffix.MatchString(tool) {
		return name
	}
	name = server + toolpolicy.ServerSeparator + invalidInName.ReplaceAllString(tool, "_")
	sum := sha256.Sum256([]byte(tool))
	return fmt.Sprintf("%s_%x", name[:min(len(name), maxName-1-nameHash)], sum[:nameHash/2])
}

// ServerOf is the server in the name of a tool; empty if there is none.
func ServerOf(tool string) string {
	server, _, found := strings.Cut(tool, toolpolicy.ServerSeparator)
	if !found {
		return ""
	}
	return server
}
