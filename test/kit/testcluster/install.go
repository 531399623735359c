// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/startup"
)

// policiesTimeout is how long policies may take until they are in force.
const policiesTimeout = time.Minute

// Install applies kustomizations with kubectl, as an administrator does, and waits until their policies are in force.
func (c *Cluster) Install(ctx context.Context, kustomizations ...string) error {
	dir, err := os.MkdirTemp("", "parley-install-")
	if err != nil {
		return fmt.Errorf("creating a folder for the kubeconfig: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // It is in the system's folder for such.
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	for _, k := range kustomizations {
		out, err := exec.CommandContext(ctx, filepath.Join(os.Getenv(assetsVariable), "kubectl"), "--kubeconfig", kubeconfig,
			"--cache-dir", dir, "apply", "--server-side", "--force-conflicts", "-k", k).CombinedOutput()
		if err != nil {
			return fmt.Errorf("installing %s: %w: %s", k, err, out)
		}
	}
	return c.AwaitPolicies(ctx)
}

// AwaitPolicies waits until every ValidatingAdmissionPolicy that exists is in force, and until they do not refuse chats
// because the API server has not read their parameters. For that it creates a policy and a binding of its own: the API
// server learns of both after all others, so once they refuse, all others do.
func (c *Cluster) AwaitPolicies(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: "testcluster-" + rand.String(8)}
	policy, binding := refusing(meta)
	for _, o := range []client.Object{policy, binding} {
		if err := c.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, meta.Name, err)
		}
		defer func() { _ = c.Client.Delete(context.WithoutCancel(ctx), o) }() // It refuses a single name.
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, policiesTimeout, true,
		func(ctx context.Context) (done bool, err error) {
			done, last = c.areInForce(ctx, meta.Name)
			if last != nil && !startup.IsRefusal(last) {
				return false, last
			}
			return done, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the admission policies: %w", errors.Join(err, last))
	}
	return nil
}

// areInForce reports whether the policy of that name refuses, and no policy refuses a chat. It writes nothing.
func (c *Cluster) areInForce(ctx context.Context, policy string) (bool, error) {
	refused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: policy, Namespace: metav1.NamespaceDefault}}
	if err := c.Client.Create(ctx, refused, client.DryRunAll); err == nil || !strings.Contains(err.Error(), lastPolicy) {
		return false, err
	}
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: policy, Namespace: metav1.NamespaceDefault}}
	err := c.Client.Create(ctx, chat, client.DryRunAll)
	return err == nil, err
}

// lastPolicy is what the policy of refusing answers.
const lastPolicy = "the policy that was created last is in force"

// refusing is a policy against ConfigMaps of its own name, with its binding.
func refusing(meta metav1.ObjectMeta) (client.Object, client.Object) {
	rule := admissionv1.NamedRuleWithOperations{ResourceNames: []string{meta.Name}}
	rule.Operations = []admissionv1.OperationType{admissionv1.Create}
	rule.Rule = admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
		Validations:      []admissionv1.Validation{{Expression: "false", Message: lastPolicy}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: meta.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	return policy, binding
}
