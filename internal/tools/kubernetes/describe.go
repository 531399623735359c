// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/tools"
)

// describe reads an object with what belongs to it. kubectl's own library would add 19 MB to the program and 13 MB to
// the memory of each generation pod, and print prose of what the object says in fewer words.
type describe struct{ *common }

const (
	// describedEvents is how many events are shown with an object, describedPods how many pods.
	describedEvents, describedPods = 15, 50
)

type describeResult struct {
	Object string      `json:"object" doc:"The object as YAML, as k8s_get shows it."`
	Events []eventLine `json:"events" doc:"The newest events about it."`
	Pods   string      `json:"pods,omitempty" doc:"The pods that it selects, as k8s_list shows them."`
	Notes  []string    `json:"notes,omitempty" doc:"What could not be read, and why."`
}

func (describe) Definition() tools.Definition {
	return tools.Definition{
		Name: string(v1alpha1.BuiltInK8sDescribe),
		Description: "Reads an object of the Kubernetes cluster, the newest events about it, and the pods that it selects. " +
			"Begin with it to find out why something does not work.",
		InputSchema: get{}.Definition().InputSchema,
		Traits:      reading,
		Reference: tools.Reference{Offered: offered, Result: describeResult{}, Errors: commonErrors,
			Limits: []string{fmt.Sprintf("At most %d events and %d pods.", describedEvents, describedPods)}},
	}
}

// Run reads all of that.
func (t describe) Run(ctx context.Context, call tools.Call) (string, error) {
	var given named
	a, err := t.begin(ctx, call, t.Definition().InputSchema, &given)
	if err != nil {
		return "", err
	}
	kind, err := a.find(ctx, given.Resource)
	if err != nil {
		return "", err
	}
	object, err := a.object(ctx, kind, given.Namespace, given.Name)
	if err != nil {
		return "", err
	}
	result := describeResult{Events: []eventLine{}}
	note := func(what string, err error) {
		if err != nil {
			result.Notes = append(result.Notes, what+": "+err.Error())
		}
	}
	namespace, selector := about(kind, a.within(kind, given.Namespace), given.Name)
	all, _, err := a.events(ctx, namespace, selector)
	note("events", err)
	result.Events = append(result.Events, all[:min(describedEvents, len(all))]...)
	result.Pods, err = a.podsOf(ctx, object)
	note("pods", err)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	shown, err := text(object.Object)
	if err != nil {
		return "", err
	}
	return fit(a, shown, func(text string) any {
		result.Object = text
		return result
	})
}

// pods are those of core/v1.
var pods = &kubeapi.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods",
	Namespaced: true}

// podsOf are the pods that an object selects; empty if it selects none.
func (a *access) podsOf(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	selector := selectorOf(object)
	if selector == nil || object.GetNamespace() == "" {
		return "", nil
	}
	found, err := a.table(ctx, pods, object.GetNamespace(), url.Values{
		"labelSelector": {selector.String()}, "limit": {strconv.Itoa(describedPods)},
	})
	if err != nil {
		return "", err
	}
	return strings.Join(found.lines(false, false), "\n"), nil
}

// selectorOf is how workloads and services say which pods are theirs; nil if the object says nothing of that.
func selectorOf(object *unstructured.Unstructured) labels.Selector {
	said, found, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil || !found || len(said) == 0 {
		return nil
	}
	if plain, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector"); err == nil {
		return labels.SelectorFromSet(plain)
	}
	var given metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(said, &given) != nil ||
		len(given.MatchLabels)+len(given.MatchExpressions) == 0 {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&given)
	if err != nil {
		return nil
	}
	return selector
}
