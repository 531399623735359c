// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"parley.dev/parley/hack/gen/markdown"
	"parley.dev/parley/internal/gateway/rest"
)

// Operations renders the page of the operations of the gateway from their description.
func Operations() ([]byte, error) {
	_, description := rest.New(rest.Options{})
	var rows [][]string
	for _, path := range slices.Sorted(maps.Keys(description.Paths)) {
		item := description.Paths[path]
		for _, o := range []struct {
			method    string
			operation *huma.Operation
		}{
			{http.MethodGet, item.Get}, {http.MethodPost, item.Post}, {http.MethodPut, item.Put}, {http.MethodPatch, item.Patch},
			{http.MethodDelete, item.Delete},
		} {
			if o.operation != nil {
				rows = append(rows, []string{markdown.Code(o.method + " " + path), markdown.Prose(o.operation.Summary),
					markdown.Prose(o.operation.Description)})
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, "internal/gateway/rest", "Operations of the gateway")
	b.WriteString("\n[The gateway](gateway.md) explains tokens, idempotency and paging. " +
		"[gateway-openapi.json](gateway-openapi.json) has all fields.\n")
	markdown.Table(&b, []string{"request", "operation", "details"}, rows)
	return b.Bytes(), nil
}
