// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
)

// Description is the description of the operations as docs/gateway-openapi.json has it.
func Description(openAPI *huma.OpenAPI) ([]byte, error) {
	raw, err := json.Marshal(openAPI)
	if err != nil {
		return nil, fmt.Errorf("describing the operations: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", " "); err != nil {
		return nil, fmt.Errorf("describing the operations: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
