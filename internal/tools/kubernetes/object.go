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
	"parley.dev/parley/internal/tools"
)

// lastApplied is an annotation with an earlier state of the object. It has nothing new, but may have values of Secrets.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// read reads an object for people, with the values of Secrets. The model does not get it.
func (a *access) read(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	raw, err := a.do(ctx, kubeapi.Request{Path: t.kind.Path(t.namespace, t.name)})
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

// readRedacted reads an object without values of Secrets.
func (a *access) readRedacted(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	o, err := a.read(ctx, t)
	if err == nil {
		removeSecrets(o.Object)
	}
	return o, err
}

func decode(raw []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &o.Object); err != nil || o.Object == nil {
		return nil, errors.New("the API server answers with what is no object")
	}
	return o, nil
}

// removeSecrets removes the values of Secrets from an object, and from all within it, such as the items of a List or a
// template of a custom resource: data and annotations get their sizes. It also removes managedFields.
func removeSecrets(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			removeSecrets(item)
		}
	case map[string]any:
		if metadata, ok := v["metadata"].(map[string]any); ok {
			removeNoise(metadata)
		}
		if v["kind"] == "Secret" && v["apiVersion"] == "v1" {
			redact(v)
			return
		}
		for _, item := range v {
			removeSecrets(item)
		}
	}
}

func removeNoise(metadata map[string]any) {
	delete(metadata, "managedFields")
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	delete(annotations, lastApplied)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// redact keeps the fields of a Secret that have no values.
func redact(secret map[string]any) {
	shown := []string{"apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"}
	maps.DeleteFunc(secret, func(key string, _ any) bool { return !slices.Contains(shown, key) })
	replaceBySizes(secret, "data", func(text string) int {
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return len(text)
		}
		return len(decoded)
	})
	length := func(text string) int { return len(text) }
	replaceBySizes(secret, "stringData", length)
	if metadata, ok := secret["metadata"].(map[string]any); ok {
		replaceBySizes(metadata, "annotations", length)
	} else {
		delete(secret, "metadata")
	}
}

// replaceBySizes replaces the values of a member by their sizes.
func replaceBySizes(object map[string]any, member string, size func(text string) int) {
	values, ok := object[member].(map[string]any)
	if !ok {
		delete(object, member)
		return
	}
	for key, value := range values {
		text, _ := value.(string)
		values[key] = fmt.Sprintf("[%d bytes, not shown]", size(text))
	}
}

// fitYAML encodes the result that with returns for the YAML of an object, truncated to what the model of the chat can
// read. The length of its encoding in JSON is not known before, so that the first results may be too long.
func (a *access) fitYAML(object *unstructured.Unstructured, with func(text string) any) (string, error) {
	text, err := encodeYAML(object.Object)
	if err != nil {
		return "", err
	}
	limit := tools.ResultLimitOf(a.call.Chat)
	most := limit
	for range 8 {
		encoded, err := tools.Encode(with(tools.Truncate(text, most)))
		if err != nil || len(encoded) <= limit {
			return encoded, err
		}
		most = min(most, len(text)) * limit / len(encoded) * 9 / 10
	}
	return tools.Fit(a.call.Chat, most, func(most int) any { return with(tools.Truncate(text, most)) })
}

func encodeYAML(object map[string]any) (string, error) {
	if len(object) == 0 {
		return "", nil
	}
	raw, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("writing the object: %w", err)
	}
	return string(raw), nil
}
