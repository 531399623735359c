// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmodelconfig

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/hostlist"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

var request = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "b"}}

func config(name string, change ...func(*v1beta1.ChatModelConfigSpec)) *v1beta1.ChatModelConfig {
	return chattest.In("ns", chattest.Config(name, change...))
}

// begin is a reconciler before a server with the configurations,
// for which models may be at example.com and model.invalid:1.
func begin(t *testing.T, configs ...client.Object) (*fakeapi.Server, *Reconciler) {
	t.Helper()
	hosts := hostlist.List{"example.com", "model.invalid:1"}
	s := fakeapi.New(t, configs...)
	return s, &Reconciler{Client: s.Client, Live: s.Live, ModelHosts: hosts, Now: func() time.Time { return chattest.Now }}
}

func TestAConfigurationSaysWhetherItCanBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.ChatModelConfigSpec)
		others []client.Object
		reason v1beta1.ConditionReason
		says   string
	}{
		"a good one": {func(*v1beta1.ChatModelConfigSpec) {}, nil, v1beta1.ReasonAccepted, "Can be used"},
		"the only default": {chattest.Default, []client.Object{config("a")}, v1beta1.ReasonAccepted,
			"Can be used"},
		"the first default by name": {chattest.Default, []client.Object{config("c", chattest.Default)},
			v1beta1.ReasonAccepted, "Can be used"},
		"another default": {chattest.Default, []client.Object{config("a", chattest.Default)},
			v1beta1.ReasonMultipleDefaults, "ChatModelConfig a says default: true too"},
		"a default elsewhere": {chattest.Default,
			[]client.Object{chattest.In("other", chattest.Config("a", chattest.Default))}, v1beta1.ReasonAccepted,
			"Can be used"},
		"a fallback that is not there": {func(s *v1beta1.ChatModelConfigSpec) {
			s.Fallbacks = []v1beta1.ModelConfigReference{{Name: "gone"}}
		}, nil, v1beta1.ReasonAccepted, "Can be used"},
		"a host that is not allowed": {func(s *v1beta1.ChatModelConfigSpec) {
			s.BaseURL = "http://169.254.169.254/v1"
		}, nil, v1beta1.ReasonHostNotAllowed, "Leads to 169.254.169.254"},
		"out of use": {func(s *v1beta1.ChatModelConfigSpec) { s.Disabled = true }, nil, v1beta1.ReasonDisabled,
			"Is out of use"},
	} {
		t.Run(name, func(t *testing.T) {
			own := config("b", c.change)
			own.Generation = 4
			s, r := begin(t, append(c.others, own)...)
			if result, err := r.Reconcile(t.Context(), request); err != nil || !result.IsZero() {
				t.Fatalf("got %v, %v", result, err)
			}
			st := fakeapi.Read(t, s, config("b")).Status
			ready := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady)
			if v1beta1.ReasonOf(ready) != c.reason || !strings.Contains(ready.Message, c.says) ||
				st.ObservedGeneration != 4 {
				t.Errorf("at generation %d it is %+v, want %s saying %q", st.ObservedGeneration, ready, c.reason, c.says)
			}
			if _, err := r.Reconcile(t.Context(), request); err != nil || len(s.Writes()) != 1 {
				t.Errorf("what it says already is written again: %v, %v", s.Writes(), err)
			}
		})
	}
}

func TestFaultOfAnyCallLosesNoStatus(t *testing.T) {
	faults := fakeapi.Reconcile{
		Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
			return begin(t, config("b", chattest.Default), config("a", chattest.Default))
		},
		Request: request,
		State:   []client.ObjectList{&v1beta1.ChatModelConfigList{}},
		Settled: map[string][]fakeapi.Fault{"get chatmodelconfig": {fakeapi.NotFound}},
	}
	faults.Run(t)
}
