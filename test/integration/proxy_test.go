// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/proxytest"
	"parley.dev/parley/test/modelserver"
)

// behindProxy is a namespace whose model is at https://models.test, of a private authority and behind a proxy.
type behindProxy struct {
	t         *testing.T
	ns        string
	authority *proxytest.Authority
	proxy     *proxytest.Proxy
}

// startBehindProxy makes the namespace, with a chat that has been asked something. Its authorities are missing.
func startBehindProxy(t *testing.T) *behindProxy {
	t.Helper()
	models, err := modelserver.New(modelserver.Script{Rules: []modelserver.Rule{{
		Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Hi")}},
	}}})
	check.OK(t, err)
	b := &behindProxy{t: t, ns: bareNamespace(t), authority: proxytest.NewAuthority(t)}
	b.proxy = proxytest.New(t, b.authority.Server(t, models, "models.test").URL)
	b.proxy.User, b.proxy.Password = "sk-any", "sk-any" // As realpod has every key.
	create(t, modelConfig(b.ns, "default", func(s *v1beta1.ChatModelConfigSpec) {
		s.Default, s.BaseURL = true, "https://models.test/v1"
		s.Proxy = &v1beta1.ModelProxy{URL: b.proxy.URL, SecretRef: &v1beta1.SecretReference{Name: "login"}}
		s.CABundleFrom = &v1beta1.CABundleSource{
			ConfigMapKeyRef: &v1beta1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}}
	}))
	create(t, modelConfig(b.ns, "same", func(s *v1beta1.ChatModelConfigSpec) {
		s.CABundleFrom = &v1beta1.CABundleSource{
			ConfigMapKeyRef: &v1beta1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}}
	}))
	create(t, newChat(b.ns, "c", "hello"))
	runPods(t, b.ns)
	return b
}

// authorities makes the ConfigMap hold this.
func (b *behindProxy) authorities(bundle []byte) {
	b.t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: "corp"}}
	if err := cluster.Client.Delete(b.t.Context(), config); client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	config.Data = map[string]string{"ca.crt": string(bundle)}
	create(b.t, config)
}

// fails waits until the chat fails so.
func (b *behindProxy) fails(reason v1beta1.ErrorReason, says string) {
	b.t.Helper()
	waitForReady(b.t, b.ns, "c", metav1.ConditionFalse, v1beta1.ConditionReason(reason))
	if e := chatIn(b.t, b.ns, "c").Status.LastError; e == nil || !strings.HasPrefix(e.Message, says) {
		b.t.Errorf("it fails with %+v", e)
	}
}

// is waits until Ready of a configuration with the same authorities is that. The one of the chat has a proxy at a
// loopback address, which this manager does not allow.
func (b *behindProxy) is(status metav1.ConditionStatus, reason v1beta1.ConditionReason) {
	b.t.Helper()
	eventually(b.t, "the configuration is "+string(reason), func() bool {
		var config v1beta1.ChatModelConfig
		if err := cluster.Client.Get(b.t.Context(), client.ObjectKey{Namespace: b.ns, Name: "same"}, &config); err != nil {
			b.t.Fatal(err)
		}
		ready := meta.FindStatusCondition(config.Status.Conditions, v1beta1.ConditionReady)
		return ready != nil && ready.Status == status && v1beta1.ReasonOf(ready) == reason
	})
}

func TestCABundleIsTrustedForModelBehindProxy(t *testing.T) {
	t.Parallel()
	b := startBehindProxy(t)
	b.fails(v1beta1.ErrorModelConfigInvalid, `ChatModelConfig default cannot be used: key "ca.crt" of ConfigMap corp, `+
		"which caBundleFrom names, does not exist in namespace "+b.ns)
	b.is(metav1.ConditionUnknown, v1beta1.ReasonCABundleNotFound)
	check.Equal(t, "without authorities the proxy is asked", nil, b.proxy.Asked())
	b.authorities(b.authority.PEM)
	create(t, say(b.ns, "c", "again"))
	waitForReady(t, b.ns, "c", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	if asked := b.proxy.Asked(); len(asked) == 0 || slices.ContainsFunc(asked, func(call string) bool {
		return call != "CONNECT models.test:443"
	}) {
		t.Errorf("the proxy is asked %v", asked)
	}
	b.is(metav1.ConditionTrue, v1beta1.ReasonAccepted)

	// Each edit of the ConfigMap counts for the next call, though connections were open.
	b.authorities(proxytest.NewAuthority(t).PEM)
	create(t, say(b.ns, "c", "untrusted"))
	b.fails(v1beta1.ErrorTLSFailed, "TLS verification of models.test failed")
	b.authorities([]byte("no certificate"))
	create(t, say(b.ns, "c", "invalid"))
	b.fails(v1beta1.ErrorModelConfigInvalid, `ChatModelConfig default cannot be used: key "ca.crt" of ConfigMap corp, `+
		"which caBundleFrom names, holds no certificate in PEM")
}

func TestAPodMountsTheCredentialsOfAProxy(t *testing.T) {
	t.Parallel()
	b := startBehindProxy(t)
	var pods corev1.PodList
	check.OK(t, cluster.Client.List(t.Context(), &pods, client.InNamespace(b.ns)))
	for _, volume := range pods.Items[0].Spec.Volumes {
		if volume.Secret != nil && volume.Secret.SecretName == "login" && len(volume.Secret.Items) == 2 {
			return
		}
	}
	t.Errorf("below %s the pod has no credentials: %+v", podspec.KeysDir, pods.Items[0].Spec.Volumes)
}
