// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// namespacesAtOnce is how many namespaces one answer has at most.
const namespacesAtOnce = 500

// Namespaces are the names of at most so many namespaces of the cluster, by name, and whether there are more. Errors
// are
// the API server's own.
func (c *Client) Namespaces(ctx context.Context, most int) (names []string, more bool, err error) {
	for next := ""; len(names) < most; {
		request := c.rest.Get().AbsPath("/api/v1/namespaces").
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").
			Param("limit", strconv.Itoa(min(namespacesAtOnce, most-len(names))))
		if next != "" {
			request = request.Param("continue", next)
		}
		raw, err := answer(request.Do(ctx))
		if err != nil {
			return nil, false, err
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			} `json:"items"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, false, fmt.Errorf("decoding the namespaces: %w", err)
		}
		for _, item := range page.Items {
			names = append(names, item.Metadata.Name)
		}
		if next = page.Metadata.Continue; next == "" {
			slices.Sort(names)
			return names, false, nil
		}
	}
	slices.Sort(names)
	return names, true, nil
}
