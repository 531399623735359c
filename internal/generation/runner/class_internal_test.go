// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

// version is a ChatClass of the name with a preamble that says which one it is.
func version(uid types.UID, generation int64, says string) *v1alpha1.ChatClass {
	class := chattest.In("ns", chattest.Class("coder", func(s *v1alpha1.ChatClassSpec) { s.Preamble = says }))
	class.UID, class.Generation = uid, generation
	return class
}

func TestStepGoesByItsClassOrANewerVersion(t *testing.T) {
	everybody := func(generation int64, says string) *v1alpha1.ChatClass {
		class := version("n", generation, "not of this chat's class")
		class.Name, class.Spec.NamespacePreamble = "everybody", says
		return class
	}
	for name, c := range map[string]struct {
		// watched and read are the chat's class and that of the namespace, as the watch has brought it and as it is.
		watched, watchedAll, read, readAll *v1alpha1.ChatClass
		want                               string
	}{
		"the watch has that version": {watched: version("a", 2, "watched"), want: "watched"},
		"it has a newer one":         {watched: version("a", 3, "watched"), want: "watched"},
		"it has only an older one": {watched: version("a", 1, "watched"), read: version("a", 2, "read"),
			want: "read"},
		"it has only a former class": {watched: version("b", 9, "watched"), read: version("a", 2, "read"), want: "read"},
		"it has none":                {read: version("a", 2, "read"), want: "read"},
		"it has an older one of the namespace": {watched: version("a", 2, "watched"), watchedAll: everybody(1, "old"),
			readAll: everybody(2, "read"), want: "read\n\nwatched"},
		"the namespace has no preamble any longer": {watched: version("a", 2, "watched"), watchedAll: everybody(1, "old"),
			readAll: everybody(3, ""), want: "watched"},
		"the namespace's class was deleted": {watched: version("a", 2, "watched"), watchedAll: everybody(1, "old"),
			want: "watched"},
		"it has changed since": {watched: version("a", 2, "watched"), watchedAll: everybody(1, "old"),
			readAll: everybody(9, "newer"), want: "newer\n\nwatched"},
	} {
		t.Run(name, func(t *testing.T) {
			api := modeltest.New(t, modelserver.Script{})
			api.Classes = map[string]*v1alpha1.ChatClass{"coder": c.read, "everybody": c.readAll}
			all := newClasses(api.API, "ns", nil)
			for _, class := range []*v1alpha1.ChatClass{c.watched, c.watchedAll} {
				if class == nil {
					continue
				}
				if err := all.informer.GetStore().Add(class); err != nil {
					t.Fatal(err)
				}
			}
			chat := chattest.In("ns", chattest.Chat("c"))
			chat.Status.ChatClass = &v1alpha1.ChatClassInForce{Name: "coder", UID: "a", Generation: 2}
			if c.watchedAll != nil {
				chat.Status.NamespaceClass = &v1alpha1.ChatClassInForce{Name: "everybody", UID: "n", Generation: 2}
			}
			if _, err := all.apply(t.Context(), chat); err != nil {
				t.Fatal(err)
			}
			check.Equal(t, "the preamble", c.want, chat.Spec.SystemPrompt)
		})
	}
}

func TestClusterBoundsTheUsesOfAdvisors(t *testing.T) {
	for uses, want := range map[int32]*v1alpha1.ChatAdvisor{
		0: {Enabled: new(false)}, 1: {Enabled: new(true), MaxUses: new(int32(1))},
	} {
		chat := chattest.In("ns", chattest.Chat("c"))
		chat.Spec.Advisor = &v1alpha1.ChatAdvisor{Enabled: new(true)}
		all := newClasses(modeltest.New(t, modelserver.Script{}).API, "ns", &uses)
		if _, err := all.apply(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
		check.Equal(t, "the advisor", want, chat.Spec.Advisor)
	}
}
