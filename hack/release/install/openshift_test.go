// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"
)

// assigned is a label of namespaces in which the cluster chooses the user of pods, as OpenShift does.
const assigned = `test.parley.dev/assign-user: "true"`

// userPolicies choose the user of pods that name none, and refuse other users.
const userPolicies = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: test-assign-user}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {test.parley.dev/assign-user: "true"}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{securityContext: Object.spec.securityContext{
          runAsUser: object.spec.?securityContext.?runAsUser.orValue(1000650000),
          fsGroup: object.spec.?securityContext.?fsGroup.orValue(1000650000)}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: test-assign-user}
spec: {policyName: test-assign-user}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: test-assign-user}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {test.parley.dev/assign-user: "true"}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  variables:
  - name: containers
    expression: object.spec.containers + object.spec.?initContainers.orValue([])
  validations:
  - expression: >-
      object.spec.securityContext.runAsUser >= 1000650000 && object.spec.securityContext.runAsUser < 1000660000 &&
      object.spec.securityContext.fsGroup >= 1000650000 && object.spec.securityContext.fsGroup < 1000660000
    message: the pod names a user or a group out of the range
  - expression: >-
      variables.containers.all(c, c.?securityContext.?runAsUser.orValue(1000650000) >= 1000650000 &&
      c.?securityContext.?runAsUser.orValue(1000650000) < 1000660000)
    message: a container names a user out of the range
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: test-assign-user}
spec: {policyName: test-assign-user, validationActions: [Deny]}
`

func TestClusterChoosesUsersOfPods(t *testing.T) {
	apply(t, "", userPolicies)
	t.Cleanup(func() { remove(t, userPolicies) })
	awaitPolicies(t)
	newNamespace(t, system, assigned)
	newWorld(t, "chats", assigned)
	byHelm("workspaces: {anyUser: true}").set(t)
	askModel(t, "chats")
	if got := awaitAnswer(t, "chats"); !strings.Contains(got, "user 1000650000") {
		t.Errorf("the tool's result is %q", got)
	}
	checkPods(t, "chats")
}

// awaitPolicies waits until a pod without a user gets one, and another user is refused.
func awaitPolicies(t *testing.T) {
	t.Helper()
	probe := "{apiVersion: v1, kind: Namespace, metadata: {name: probe, labels: {" + assigned + "}}}"
	apply(t, "", probe)
	t.Cleanup(func() { remove(t, probe) })
	create := func(context string) string {
		out, err := try(t, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {securityContext: {"+context+
			"}, containers: [{name: c, image: i}]}}", "create", "--dry-run=server", "--namespace=probe", "-f", "-",
			"-o=jsonpath={.spec.securityContext.runAsUser}")
		if err != nil {
			return err.Error()
		}
		return out
	}
	eventually(t, "the policies are enforced", func() bool {
		return create("") == "1000650000" && strings.Contains(create("runAsUser: 7"), "names a user")
	})
}
