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
// library reads a result, or a list, as a whole or not at all, and rounds large integers.
type exact struct {
	sdk.Transport
	// agreed is called with the version of a session. The library says it to connections of its own only.
	agreed func(version string)
}

// Connect implements sdk.Transport.
func (t exact) Connect(ctx context.Context) (sdk.Connection, error) {
	inner, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &exactConnection{Connection: inner, agreed: t.agreed, methods: map[jsonrpc.ID]string{}}, nil
}

type exactConnection struct {
	sdk.Connection
	agreed func(version string)

	mu sync.Mutex
	// methods are those of the requests that have no response yet.
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

// keep makes a result one that the library can read, with what the server wrote in it.
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
		var said struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(response.Result, &said) == nil {
			c.agreed(said.ProtocolVersion)
		}
	case "tools/call":
		response.Result = keptResult(response.Result)
	case "tools/list":
		response.Result = keptList(response.Result)
	}
}

// rawKey is where the JSON of the server stands in the _meta of what the library reads.
const rawKey = "parley.dev/raw"

func meta(raw json.RawMessage) map[string]string { return map[string]string{rawKey: string(raw)} }

// raw is the JSON of the server.
func raw(m sdk.Meta) json.RawMessage {
	text, _ := m[rawKey].(string)
	return json.RawMessage(text)
}

// keptResult leaves to the library only what it does for a server that asks for input.
func keptResult(result json.RawMessage) json.RawMessage {
	var asks struct {
		ResultType    lenientText     `json:"resultType"`
		InputRequests json.RawMessage `json:"inputRequests,omitempty"`
		RequestState  json.RawMessage `json:"requestState,omitempty"`
	}
	kept := map[string]any{"content": []any{}, "_meta": meta(result)}
	if json.Unmarshal(result, &asks) == nil && asks.ResultType == "input_required" {
		kept["resultType"], kept["inputRequests"], kept["requestState"] = asks.ResultType, asks.InputRequests,
			asks.RequestState
	}
	return encoded(kept, result)
}

// keptList leaves to the library the name of a tool and the schema of its arguments, which says what goes into headers.
func keptList(result json.RawMessage) json.RawMessage {
	var list map[string]json.RawMessage
	var definitions []json.RawMessage
	if json.Unmarshal(result, &list) != nil || json.Unmarshal(list["tools"], &definitions) != nil {
		return result
	}
	kept := make([]map[string]any, len(definitions))
	for i, definition := range definitions {
		var tool struct {
			Name        lenientText     `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		_ = json.Unmarshal(definition, &tool) // What is wrong with it is said when it is defined.
		kept[i] = map[string]any{"name": tool.Name, "inputSchema": tool.InputSchema, "_meta": meta(definition)}
	}
	list["tools"] = encoded(kept, list["tools"])
	return encoded(list, result)
}

// encoded is the value as JSON, and otherwise what is there.
func encoded(value any, otherwise json.RawMessage) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		return otherwise
	}
	return text
}
