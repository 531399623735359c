// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

const (
	hidden  = "correct-horse-battery"
	hidden2 = "value-in-an-annotation"
)

// leaks fails the test if a text holds a value of a Secret.
func leaks(t *testing.T, where, text string) {
	t.Helper()
	for _, value := range []string{hidden, hidden2} {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)),
			base64.StdEncoding.EncodeToString([]byte(`{"kind":"Secret","v":"` + value + `"}`))} {
			if strings.Contains(text, form) {
				t.Errorf("%s shows a value: %s", where, text)
			}
		}
	}
}

// Security (a model that works in the cluster): cannot see the value of a Secret by reading Secrets, by errors, diffs
// or annotations, even if the account may read it. Also TestSecretsWithinOtherObjectsAreTakenOut,
// FuzzNoObjectShowsAValue, TestASecretIsNotApplied of internal/tools/kubernetes.
func TestNoValueOfASecretIsShown(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithApproval, all("*", "*"))
	applied := `{"apiVersion":"v1","kind":"Secret","stringData":{"password":"` + hidden2 + `"}}`
	secret := &corev1.Secret{ObjectMeta: s.meta("keys"), Data: map[string][]byte{"password": []byte(hidden)}}
	secret.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": applied,
		"kapp.k14s.io/original": applied}
	s.create(secret)
	token := &corev1.Secret{ObjectMeta: s.meta("token"), Type: corev1.SecretTypeServiceAccountToken,
		Data: map[string][]byte{"token": []byte(hidden)}}
	token.Annotations = map[string]string{corev1.ServiceAccountNameKey: "worker"}
	s.create(token)
	s.create(&corev1.Event{ObjectMeta: s.meta("e"), Reason: "Any",
		InvolvedObject: corev1.ObjectReference{Kind: "Secret", Namespace: s.ns, Name: "keys"}})
	for _, call := range [][2]string{
		{"k8s_get", `{"resource":"secret","name":"keys"}`},
		{"k8s_get", `{"resource":"secrets.v1.","name":"token"}`},
		{"k8s_list", `{"resource":"secrets","wide":true}`},
		{"k8s_list", `{"resource":"secrets","wide":true,"all_namespaces":true}`},
		{"k8s_describe", `{"resource":"secrets","name":"keys"}`},
		{"k8s_events", `{"resource":"secrets","name":"keys"}`},
		{"k8s_delete", `{"resource":"secrets","name":"keys"}`},
		{"k8s_apply", `{"manifest":"{apiVersion: v1, kind: Secret, metadata: {name: keys}, data: {password: eA==}}"}`},
		{"k8s_apply", `{"manifest":"{apiVersion: v1, kind: Secret, metadata: {name: keys}, data: {password: 1}}"}`},
		{"k8s_get", `{"resource":"secrets","name":"` + hidden2[:5] + `"}`},
	} {
		said, err := s.run(call[0], call[1])
		leaks(t, call[0]+" "+call[1], said)
		if err != nil {
			leaks(t, "the error of "+call[0], err.Error())
		}
		if s.asked != nil {
			leaks(t, "the question of "+call[0], s.asked.Proposal+s.asked.State)
		}
	}
	var got getResult
	s.must("k8s_get", `{"resource":"secret","name":"keys"}`, &got)
	if !strings.Contains(got.Object, "password: '[21 bytes, not shown]'") {
		t.Errorf("of the key it says\n%s", got.Object)
	}
}

func TestASecretIsNotApplied(t *testing.T) {
	t.Parallel()
	s := newScene(t, v1beta1.ClusterChangesWithoutApproval, all("*", "*"))
	for _, manifest := range []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
		"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]}",
		"{apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}}]}",
	} {
		if _, err := s.run("k8s_apply", `{"manifest":`+jsonString(manifest)+`}`); err == nil ||
			!strings.Contains(err.Error(), "Secret") && !strings.Contains(err.Error(), "is a list") {
			t.Errorf("%s: %v", manifest, err)
		}
	}
	if s.read(&corev1.Secret{ObjectMeta: s.meta("a")}) || s.read(&corev1.ConfigMap{ObjectMeta: s.meta("b")}) {
		t.Error("something was applied")
	}
}

func TestSecretsWithinOtherObjectsAreTakenOut(t *testing.T) {
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"k": "aGlkZGVu"},
		"stringData": map[string]any{"s": hidden}, "unheardOf": hidden,
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"any": hidden2}}}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "List", "items": []any{secret, map[string]any{
			"apiVersion": "example.dev/v1", "kind": "Bundle",
			"metadata": map[string]any{"name": "b", "managedFields": []any{hidden},
				"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": hidden}},
			"spec": map[string]any{"resources": []any{map[string]any{"template": secret}}},
		}},
	})
	check.OK(t, err)
	o, err := decode(raw)
	check.OK(t, err)
	removeSecrets(o.Object)
	shown, err := encodeYAML(o.Object)
	check.OK(t, err)
	leaks(t, "the list", shown)
	if strings.Contains(shown, "aGlkZGVu") || strings.Count(shown, "k: '[6 bytes, not shown]'") != 2 {
		t.Errorf("it shows\n%s", shown)
	}
}

func FuzzNoObjectShowsAValue(f *testing.F) {
	f.Add([]byte(`{"kind":"Secret","apiVersion":"v1","data":"x"}`), "a")
	f.Add([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":[1],"data":{"a":[{"b":1}]}}`), "b")
	f.Add([]byte(`{"items":[{"kind":"Secret","apiVersion":"v1","stringData":{"a":null}}]}`), "c")
	f.Fuzz(func(t *testing.T, raw []byte, key string) {
		var outer map[string]any
		if json.Unmarshal(raw, &outer) != nil || outer == nil {
			return
		}
		outer["within"] = map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{key: hidden}}
		with, err := json.Marshal(outer)
		if err != nil {
			return
		}
		o, err := decode(with)
		if err != nil {
			return
		}
		removeSecrets(o.Object)
		if shown, err := encodeYAML(o.Object); err == nil && key != hidden && strings.Contains(shown, hidden) {
			t.Errorf("%s", shown)
		}
	})
}
