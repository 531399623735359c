// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/printable"
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

// define makes a definition of what the server says. Characters that hide text from people are left out of the
// description; secrets are scrubbed. problem is why the tool cannot be offered; empty if it can.
func define(server string, tool *sdk.Tool, secrets scrubber) (d definition, problem string) {
	raw, err := json.Marshal([]any{tool.Name, tool.Description, tool.InputSchema, tool.OutputSchema})
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
	}
	input, err := json.Marshal(tool.InputSchema)
	if err != nil || json.Unmarshal([]byte(secrets.scrub(string(input))), &d.schema) != nil {
		return d, "the schema of its arguments is no object"
	}
	if d.schema == nil {
		d.schema = map[string]any{}
	}
	if _, ok := d.schema["type"]; !ok {
		d.schema["type"] = "object"
	}
	if d.schema["type"] != "object" {
		return d, "the schema of its arguments is that of no object"
	}
	if hints := tool.Annotations; hints != nil {
		d.readOnly, d.repeatable = hints.ReadOnlyHint, hints.ReadOnlyHint || hints.IdempotentHint
	}
	return d, ""
}

// selection is what is offered of a server's tools.
type selection struct {
	definitions []definition
	// left are the names of those that are left out although the filter lets them through.
	left []string
}

// choose offers the tools that the filter lets through, sorted by name, as many as fit.
func choose(server *v1alpha1.MCPServer, all []*sdk.Tool, secrets scrubber) (s selection) {
	slices.SortStableFunc(all, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	total, taken := 0, map[string]bool{}
	for _, tool := range all {
		if tool.Name == "" || !passes(server.Tools, tool.Name) {
			continue
		}
		d, problem := define(server.Name, tool, secrets)
		if problem != "" || taken[d.name] || len(s.definitions) == v1alpha1.MaxMCPServerTools ||
			total+d.size > maxDefinitions {
			s.left = append(s.left, tool.Name)
			continue
		}
		total, taken[d.name] = total+d.size, true
		s.definitions = append(s.definitions, d)
	}
	return s
}

// note says how many tools are left out; empty if none is.
func (s selection) note() string {
	if len(s.left) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of its tools are too large, too many or have no usable schema, %.60q first; see tools.allow",
		len(s.left), printable.Line(s.left[0]))
}
