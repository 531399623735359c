// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
)

// version is a ChatClass of the name with a preamble that says which one it is.
func version(uid types.UID, generation int64, says string) *v1alpha1.ChatClass {
	class := chattest.In("ns", chattest.Class("coder", func(s *v1alpha1.ChatClassSpec) { s.Preamble = says }))
	class.UID, class.Generation = uid, generation
	return class
}

func TestAStepGoesByTheClassThatItWasDecidedByOrANewerVersionOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		told *v1alpha1.ChatClass
		want string
	}{
		"the watch has told of that version":           {version("a", 2, "watched"), "watched"},
		"the watch has told of a newer one":            {version("a", 3, "watched"), "watched"},
		"the watch has told of an older one only":      {version("a", 1, "watched"), "read"},
		"the watch has told of a former class only":    {version("b", 2, "watched"), "read"},
		"the watch has not told of any of that name":   {nil, "read"},
		"a former class has changed more often by far": {version("b", 9, "watched"), "read"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(version("a", 2, "read"))
			}))
			defer server.Close()
			client, err := apiclient.New(&rest.Config{Host: server.URL}, "test")
			if err != nil {
				t.Fatal(err)
			}
			all := newClasses(client, "ns", nil)
			if c.told != nil {
				if err := all.informer.GetStore().Add(c.told); err != nil {
					t.Fatal(err)
				}
			}
			chat := chattest.In("ns", chattest.Chat("c"))
			chat.Status.ChatClass = &v1alpha1.ChatClassInForce{Name: "coder", UID: "a", Generation: 2}
			if _, err := all.apply(t.Context(), chat); err != nil || chat.Spec.SystemPrompt != c.want {
				t.Errorf("the chat has the preamble that was %s, want %s (%v)", chat.Spec.SystemPrompt, c.want, err)
			}
		})
	}
}

func TestAStepBeginsWithThePreambleOfTheNamespaceThatItWasDecidedBy(t *testing.T) {
	everybody := func(generation int64, says string) *v1alpha1.ChatClass {
		class := version("n", generation, "not of this chat's class")
		class.Name, class.Spec.NamespacePreamble = "everybody", says
		return class
	}
	for name, c := range map[string]struct {
		there *v1alpha1.ChatClass
		want  string
	}{
		"the watch lags behind":             {everybody(2, "read"), "read\n\nwatched"},
		"it says nothing of that any more":  {everybody(3, ""), "watched"},
		"the class was deleted meanwhile":   {nil, "watched"},
		"it has changed since the decision": {everybody(9, "newer"), "newer\n\nwatched"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if c.there == nil {
					w.WriteHeader(http.StatusNotFound)
					_ = json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound})
					return
				}
				_ = json.NewEncoder(w).Encode(c.there)
			}))
			defer server.Close()
			client, err := apiclient.New(&rest.Config{Host: server.URL}, "test")
			if err != nil {
				t.Fatal(err)
			}
			all := newClasses(client, "ns", nil)
			for _, told := range []*v1alpha1.ChatClass{version("a", 1, "watched"), everybody(1, "old")} {
				if err := all.informer.GetStore().Add(told); err != nil {
					t.Fatal(err)
				}
			}
			chat := chattest.In("ns", chattest.Chat("c"))
			chat.Status.ChatClass = &v1alpha1.ChatClassInForce{Name: "coder", UID: "a", Generation: 1}
			chat.Status.NamespaceClass = &v1alpha1.ChatClassInForce{Name: "everybody", UID: "n", Generation: 2}
			if _, err := all.apply(t.Context(), chat); err != nil || chat.Spec.SystemPrompt != c.want {
				t.Errorf("the chat has %q, want %q (%v)", chat.Spec.SystemPrompt, c.want, err)
			}
		})
	}
}
