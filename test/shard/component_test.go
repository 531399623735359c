// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
)

// three is a kustomization with the other components of the manager, and with another number of shards as the component
// says to set it.
const three = `
resources: [CONFIG/default]
components: [CONFIG/profiling, CONFIG/tracing, CONFIG/pods, CONFIG/sharding]
patches:
- target: {kind: StatefulSet, name: parley-manager}
  patch: |-
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: parley-manager}
    spec:
      replicas: 3
      template: {spec: {containers: [{name: manager, env: [{name: PARLEY_TOTAL_SHARDS, value: "3"}]}]}}
`

// TestTheComponentMakesAManagerOfEachShard builds the component as users do, and has the API server take what comes
// out.
func TestTheComponentMakesAManagerOfEachShard(t *testing.T) {
	var managers []client.Object
	for _, o := range testcluster.Kustomized(t, three) {
		if o.GetName() == "parley-manager" && slices.Contains([]string{"Deployment", "StatefulSet"}, o.GetKind()) {
			managers = append(managers, o)
		}
	}
	if len(managers) != 1 {
		t.Fatalf("there are %v", managers)
	}
	cluster.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managers[0].GetNamespace()}})
	strict := client.WithFieldValidation(cluster.Client, metav1.FieldValidationStrict)
	check.OK(t, strict.Create(t.Context(), managers[0]))
	var set appsv1.StatefulSet
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(managers[0]), &set))
	container := set.Spec.Template.Spec.Containers[0]
	values := map[string]string{}
	for _, variable := range container.Env {
		values[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			values[variable.Name] = from.FieldRef.FieldPath
		}
	}
	args := []string{"--health-address=:8081", "--profiling", "--pods-config=/etc/parley/pods.yaml"}
	if *set.Spec.Replicas != 3 || values["PARLEY_TOTAL_SHARDS"] != "3" ||
		values["PARLEY_SHARD"] != "metadata.labels['"+appsv1.PodIndexLabel+"']" ||
		values["PARLEY_TRACE_GENERATION_PODS"] != "true" || !slices.Equal(container.Args, args) {
		t.Errorf("%d managers have the arguments %v and the variables %v", *set.Spec.Replicas, container.Args, values)
	}
}
