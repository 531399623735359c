// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// describedEvents and describedPods are how many k8s_describe shows.
const describedEvents, describedPods = 15, 50

type getResult struct {
	Object string `json:"object" doc:"The object as YAML, without managedFields."`
}

var getDefinition = tools.Definition{
	Name:        string(v1alpha1.BuiltInK8sGet),
	Description: "Reads an object of the Kubernetes cluster as YAML. Of Secrets it shows keys and sizes, never values.",
	InputSchema: arguments.Object(map[string]any{
		"resource": resourceArgument, "name": nameArgument, "namespace": namespaceArgument,
	}, "resource", "name"),
	Traits: reading,
	Reference: tools.Reference{Offered: offered, Result: getResult{},
		Limits: []string{"Of an object that is larger than a result the beginning and the end are shown.",
			"Of Secrets, also of those within other objects, data and annotations show sizes in place of values."}},
}

func get(ctx context.Context, a *access, args objectArguments) (string, error) {
	t, err := a.find(ctx, args)
	if err != nil {
		return "", err
	}
	object, err := a.readRedacted(ctx, t)
	if err != nil {
		return "", err
	}
	return a.fitYAML(object, func(text string) any { return getResult{text} })
}

type describeResult struct {
	Object string      `json:"object" doc:"The object as YAML, as k8s_get shows it."`
	Events []eventLine `json:"events" doc:"The newest events about it."`
	Pods   string      `json:"pods,omitempty" doc:"The pods that it selects, as k8s_list shows them."`
	Notes  []string    `json:"notes,omitempty" doc:"What could not be read, and why."`
}

var describeDefinition = tools.Definition{
	Name: string(v1alpha1.BuiltInK8sDescribe),
	Description: "Reads an object of the Kubernetes cluster, the newest events about it, and the pods that it selects. " +
		"Begin with it to find out why something does not work.",
	InputSchema: getDefinition.InputSchema,
	Traits:      reading,
	Reference: tools.Reference{Offered: offered, Result: describeResult{},
		Limits: []string{fmt.Sprintf("At most %d events and %d pods.", describedEvents, describedPods)}},
}

// describe does not use kubectl's library, which would add 19 MB to the program and 13 MB to the memory of each
// generation pod.
func describe(ctx context.Context, a *access, args objectArguments) (string, error) {
	t, err := a.find(ctx, args)
	if err != nil {
		return "", err
	}
	object, err := a.readRedacted(ctx, t)
	if err != nil {
		return "", err
	}
	result := describeResult{Events: []eventLine{}}
	note := func(what string, err error) {
		if err != nil {
			result.Notes = append(result.Notes, what+": "+err.Error())
		}
	}
	namespace, selector := eventsAbout(t)
	all, _, err := a.events(ctx, namespace, selector)
	note("events", err)
	result.Events = append(result.Events, all[:min(describedEvents, len(all))]...)
	result.Pods, err = a.selectedPods(ctx, object)
	note("pods", err)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return a.fitYAML(object, func(text string) any {
		result.Object = text
		return result
	})
}

var podKind = &kubeapi.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods",
	Namespaced: true}

// selectedPods is the table of the pods that an object selects; empty if it selects none.
func (a *access) selectedPods(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	selector := podSelector(object)
	if selector == nil || object.GetNamespace() == "" {
		return "", nil
	}
	found, err := a.table(ctx, podKind, object.GetNamespace(),
		query(map[string]string{"labelSelector": selector.String(), "limit": fmt.Sprint(describedPods)}))
	if err != nil {
		return "", err
	}
	return strings.Join(found.lines(false, false), "\n"), nil
}

// podSelector is the selector of a workload or a service; nil if the object has none.
func podSelector(object *unstructured.Unstructured) labels.Selector {
	raw, _, _ := unstructured.NestedMap(object.Object, "spec", "selector") // Another type is no selector.
	if len(raw) == 0 {
		return nil
	}
	if plain, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector"); err == nil {
		return labels.SelectorFromSet(plain)
	}
	var s metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s) != nil ||
		len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil
	}
	return selector
}
