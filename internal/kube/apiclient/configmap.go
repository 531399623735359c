// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
)

// ConfigMap is the content of a ConfigMap. The kind itself would bring in all others of Kubernetes.
type ConfigMap struct {
	Data       map[string]string `json:"data"`
	BinaryData map[string][]byte `json:"binaryData"`
}

// Value is the content of a key, and whether there is such a key.
func (m *ConfigMap) Value(key string) ([]byte, bool) {
	if text, ok := m.Data[key]; ok {
		return []byte(text), true
	}
	value, ok := m.BinaryData[key]
	return value, ok
}

// ConfigMap reads a ConfigMap. Errors are the API server's own.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*ConfigMap, error) {
	raw, err := answer(c.rest.Get().AbsPath("/api/v1/namespaces", namespace, "configmaps", name).Do(ctx))
	if err != nil {
		return nil, err
	}
	out := &ConfigMap{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("decoding ConfigMap %s: %w", name, err)
	}
	return out, nil
}
