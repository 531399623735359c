// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

func TestSchemasOfClientToolsAreChecked(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"n":{"maximum":9007199254740993}}}`: "",
		`{"type":"array"}`:                  "type must be object",
		`{"properties":{"n":{"type":"x"}}}`: "/properties/n/type",
	} {
		client := v1alpha1.ClientTool{Name: "open_ticket", InputSchema: &runtime.RawExtension{Raw: []byte(schema)}}
		tool := tools.OfClient(&v1alpha1.ChatTools{Client: []v1alpha1.ClientTool{client}})[0]
		err := tool.SchemaError()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
		if sent, err := json.Marshal(tool.InputSchema); want == "" &&
			(err != nil || !strings.Contains(string(sent), "9007199254740993")) {
			t.Errorf("the model is sent %s, %v", sent, err)
		}
	}
}
