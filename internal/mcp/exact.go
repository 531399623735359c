// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// exact is a transport that keeps results of calls and definitions of tools as the server wrote them. The protocol's
// library rejects a result or a list because of one invalid part, and rounds large integers.
type exact struct {
	sdk.Transport
	// onVersion is called with the version of a session, which the library passes to its own connections only.
	onVersion func(version string)
}

// Connect implements sdk.Transport.
func (t exact) Connect(ctx context.Context) (sdk.Connection, error) {
	inner, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &exactConnection{Connection: inner, onVersion: t.onVersion, methods: map[jsonrpc.ID]string{}}, nil
}

type exactConnection struct {
	sdk.Connection
	onVersion func(version string)

	mu sync.Mutex
	// methods are those of the pending requests.
	methods map[jsonrpc.ID]string
}

// Write implements sdk.Connection.
func (c *exactConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		c.mu.Lock()
		c.methods[request.ID] = request.Method
		c.mu.Unlock()
	}
	return c.Connection.Write(ctx, message)
}

// Read implements sdk.Connection.
func (c *exactConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if response, ok := message.(*jsonrpc.Response); ok && err == nil {
		c.keep(response)
	}
	return message, err
}

// keep replaces a result by one that the library can decode, with the original in its _meta.
func (c *exactConnection) keep(response *jsonrpc.Response) {
	c.mu.Lock()
	method := c.methods[response.ID]
	delete(c.methods, response.ID)
	c.mu.Unlock()
	if response.Error != nil {
		return
	}
	switch method {
	case "initialize":
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(response.Result, &result) == nil {
			c.onVersion(result.ProtocolVersion)
		}
	case "tools/call":
		response.Result = wrapResult(response.Result)
	case "tools/list":
		response.Result = wrapList(response.Result)
	}
}

// rawKey is the member of _meta with the JSON of the server.
const rawKey = "parley.dev/raw"

func meta(raw json.RawMessage) map[string]string { return map[string]string{rawKey: string(raw)} }

// raw is the JSON of the server.
func raw(m sdk.Meta) json.RawMessage {
	text, _ := m[rawKey].(string)
	return json.RawMessage(text)
}

// wrapResult keeps for the library only a server's request for input.
func wrapResult(result json.RawMessage) json.RawMessage {
	var r struct {
		ResultType    lenientText     `json:"resultType"`
		InputRequests json.RawMessage `json:"inputRequests,omitempty"`
		RequestState  json.RawMessage `json:"requestState,omitempty"`
	}
	wrapped := map[string]any{"content": []any{}, "_meta": meta(result)}
	if json.Unmarshal(result, &r) == nil && r.ResultType == "input_required" {
		wrapped["resultType"], wrapped["inputRequests"], wrapped["requestState"] = r.ResultType, r.InputRequests,
			r.RequestState
	}
	return encodeOr(wrapped, result)
}

// wrapList keeps for the library the name of a tool and the schema of its arguments, which determines headers.
func wrapList(result json.RawMessage) json.RawMessage {
	var list map[string]json.RawMessage
	var definitions []json.RawMessage
	if json.Unmarshal(result, &list) != nil || json.Unmarshal(list["tools"], &definitions) != nil {
		return result
	}
	wrapped := make([]map[string]any, len(definitions))
	for i, definition := range definitions {
		var tool struct {
			Name        lenientText     `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		_ = json.Unmarshal(definition, &tool) // define reports the error.
		wrapped[i] = map[string]any{"name": tool.Name, "inputSchema": tool.InputSchema, "_meta": meta(definition)}
	}
	list["tools"] = encodeOr(wrapped, list["tools"])
	return encodeOr(list, result)
}

// encodeOr encodes the value, or returns the fallback if that fails.
func encodeOr(value any, fallback json.RawMessage) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		return fallback
	}
	return text
}
