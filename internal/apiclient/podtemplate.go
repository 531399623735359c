// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodTemplate is what a model may know of a core/v1 PodTemplate. The kind itself would bring in all others of
// Kubernetes; what is not here, such as environment variables, is not kept.
type PodTemplate struct {
	metav1.ObjectMeta `json:"metadata"`
	Template          struct {
		Spec struct {
			Containers []Container `json:"containers"`
		} `json:"spec"`
	} `json:"template"`
}

// Container of a PodTemplate.
type Container struct {
	Name      string `json:"name"`
	Image     string `json:"image"`
	Resources struct {
		Requests map[string]string `json:"requests"`
		Limits   map[string]string `json:"limits"`
	} `json:"resources"`
}

// PodTemplates lists at most so many PodTemplates of a namespace that a label selector selects, and says whether there
// are more. Errors are the API server's own.
func (c *Client) PodTemplates(ctx context.Context, namespace, selector string, most int) ([]PodTemplate, bool, error) {
	raw, err := c.rest.Get().AbsPath("/api/v1/namespaces", namespace, "podtemplates").
		Param("labelSelector", selector).Param("limit", strconv.Itoa(most)).Do(ctx).Raw()
	if err != nil {
		return nil, false, err
	}
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []PodTemplate   `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, false, fmt.Errorf("decoding the PodTemplates of namespace %s: %w", namespace, err)
	}
	return list.Items, list.Metadata.Continue != "", nil
}
