// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/internal/kube/kubeapi"
)

// object reads an object, without values of Secrets.
func (a *access) object(ctx context.Context, kind *kubeapi.Kind, namespace, name string) (*unstructured.Unstructured,
	error) {
	raw, err := a.do(ctx, kubeapi.Request{Path: kind.Path(a.within(kind, namespace), name)})
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

// whole reads an object for people, who decide about a change of it. The model does not get it.
func (a *access) whole(ctx context.Context, kind *kubeapi.Kind, namespace, name string) (*unstructured.Unstructured,
	error) {
	raw, err := a.do(ctx, kubeapi.Request{Path: kind.Path(a.within(kind, namespace), name)})
	if err != nil {
		return nil, err
	}
	return decodeWhole(raw)
}

func decodeWhole(raw []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &o.Object); err != nil || o.Object == nil {
		return nil, errors.New("the API server answers with what is no object")
	}
	return o, nil
}

// decode decodes an object, and takes out the values of Secrets.
func decode(raw []byte) (*unstructured.Unstructured, error) {
	o, err := decodeWhole(raw)
	if err == nil {
		withoutValues(o.Object)
	}
	return o, err
}

// noise are annotations in which clients keep whole objects as they have applied them. Nothing in them is not
// elsewhere, but values of Secrets can be.
var noise = []string{"kubectl.kubernetes.io/last-applied-configuration"}

// withoutValues takes the values of Secrets out of an object, and of whatever is within it, such as the items of a List
// or a template of a custom resource: data and annotations have their sizes in place of them. managedFields go, too.
func withoutValues(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			withoutValues(item)
		}
	case map[string]any:
		if metadata, ok := v["metadata"].(map[string]any); ok {
			withoutNoise(metadata)
		}
		if v["kind"] == "Secret" && v["apiVersion"] == "v1" {
			redact(v)
			return
		}
		for _, item := range v {
			withoutValues(item)
		}
	}
}

func withoutNoise(metadata map[string]any) {
	delete(metadata, "managedFields")
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return slices.Contains(noise, key) })
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// redact leaves of a Secret what is known not to be a value.
func redact(secret map[string]any) {
	shown := []string{"apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"}
	maps.DeleteFunc(secret, func(key string, _ any) bool { return !slices.Contains(shown, key) })
	sizes(secret, "data", func(text string) int {
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return len(text)
		}
		return len(decoded)
	})
	sizes(secret, "stringData", func(text string) int { return len(text) })
	if metadata, ok := secret["metadata"].(map[string]any); ok {
		sizes(metadata, "annotations", func(text string) int { return len(text) })
	} else {
		delete(secret, "metadata")
	}
}

// sizes puts sizes in the place of the values of a member.
func sizes(of map[string]any, member string, size func(text string) int) {
	values, ok := of[member].(map[string]any)
	if !ok {
		delete(of, member)
		return
	}
	for key, value := range values {
		text, _ := value.(string)
		values[key] = fmt.Sprintf("[%d bytes, not shown]", size(text))
	}
}

// text is an object as YAML.
func text(object map[string]any) (string, error) {
	if len(object) == 0 {
		return "", nil
	}
	raw, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("writing the object: %w", err)
	}
	return string(raw), nil
}
