// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// sample creates what a file of config/samples describes, with the images of this cluster. Its Chats it returns, for
// the test to create them.
func (w *world) sample(path ...string) (chats []*unstructured.Unstructured) {
	w.t.Helper()
	raw, err := os.ReadFile(testcluster.Path(append([]string{"config", "samples"}, path...)...))
	check.OK(w.t, err)
	ours := strings.NewReplacer("busybox:1.37", toolbox, "parley.dev/parley:dev", image)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(ours.Replace(string(raw))), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return chats
		} else if err != nil {
			w.t.Fatal(err)
		}
		object.SetNamespace(w.ns)
		if object.GetKind() == "Chat" {
			chats = append(chats, object)
			continue
		}
		w.create(object)
	}
}
