// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmodelconfig

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
	"parley.dev/parley/test/kit/proxytest"
)

func bundled(s *v1beta1.ChatModelConfigSpec) {
	s.CABundleFrom = &v1beta1.CABundleSource{
		ConfigMapKeyRef: &v1beta1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}}
}

func authorities(ns string, content map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "corp"}, Data: content}
}

func TestAConfigurationSaysWhetherItsAuthoritiesAreThere(t *testing.T) {
	good := string(proxytest.NewAuthority(t).PEM)
	binary := authorities("ns", nil)
	binary.BinaryData = map[string][]byte{"ca.crt": []byte(good)}
	for name, c := range map[string]struct {
		change  func(*v1beta1.ChatModelConfigSpec)
		holder  *corev1.ConfigMap
		ready   metav1.ConditionStatus
		reason  v1beta1.ConditionReason
		says    string
		another time.Duration
	}{
		"there":           {bundled, authorities("ns", map[string]string{"ca.crt": good}), "True", "Accepted", "Can be used", 10 * time.Minute},
		"there as binary": {bundled, binary, "True", "Accepted", "Can be used", 10 * time.Minute},
		"no ConfigMap": {bundled, authorities("other", map[string]string{"ca.crt": good}), "Unknown", "CABundleNotFound",
			`Cannot be used yet: key "ca.crt" of ConfigMap corp, which spec.caBundleFrom names, does not exist. Create it`, 15 * time.Second},
		"no such key": {bundled, authorities("ns", map[string]string{"tls.crt": good}), "Unknown", "CABundleNotFound", "does not exist",
			15 * time.Second},
		"no certificate": {bundled, authorities("ns", map[string]string{"ca.crt": "-----BEGIN"}), "False", "CABundleInvalid",
			"holds no certificate in PEM. Put the certificates", 15 * time.Second},
		"a Secret, which the manager cannot read": {func(s *v1beta1.ChatModelConfigSpec) {
			s.CABundleFrom = &v1beta1.CABundleSource{SecretKeyRef: &v1beta1.SecretKeyReference{Name: "gone", Key: "k"}}
		}, authorities("ns", nil), "True", "Accepted", "Secrets such as the API key are checked by the first call", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t, config("b", c.change), c.holder)
			for range 2 { // What it says already is not written again, and looked at again all the same.
				result, err := r.Reconcile(t.Context(), request)
				if err != nil || result.RequeueAfter != c.another {
					t.Errorf("got %v, %v", result, err)
				}
			}
			ready := meta.FindStatusCondition(fakeapi.Read(t, s, config("b")).Status.Conditions, v1beta1.ConditionReady)
			if ready.Status != c.ready || v1beta1.ReasonOf(ready) != c.reason || !strings.Contains(ready.Message, c.says) {
				t.Errorf("it is %+v", ready)
			}
			if len(s.Writes()) != 1 {
				t.Errorf("it writes %v", s.Writes())
			}
		})
	}
}

func TestAnUnreadableBundleIsNoFault(t *testing.T) {
	s, r := begin(t, config("b", bundled))
	s.Fail = func(call string) error {
		if call != "live get configmap" {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "corp", nil)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(fakeapi.Read(t, s, config("b")).Status.Conditions, v1beta1.ConditionReady)
	check.Equal(t, "it is", v1beta1.ReasonAccepted, v1beta1.ReasonOf(ready))
}

func TestFaultOfAnyCallLosesNoBundle(t *testing.T) {
	good := string(proxytest.NewAuthority(t).PEM)
	faults := fakeapi.Reconcile{
		Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
			return begin(t, config("b", chattest.Default, bundled), authorities("ns", map[string]string{"ca.crt": good}))
		},
		Request: request,
		State:   []client.ObjectList{&v1beta1.ChatModelConfigList{}},
		Settled: map[string][]fakeapi.Fault{"get chatmodelconfig": {fakeapi.NotFound}},
	}
	faults.Run(t)
}
