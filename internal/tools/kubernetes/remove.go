// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// remove deletes an object.
type remove struct{ *common }

type removeArguments struct {
	named
	Propagation metav1.DeletionPropagation `json:"propagation"`
}

type removeResult struct {
	Object  string `json:"object" doc:"Its kind, name and namespace."`
	Outcome string `json:"outcome" doc:"\"deleted\", \"gone\" before that, or \"deleting\": it goes once it has ended."`
}

func (remove) Definition() tools.Definition {
	propagation := arguments.OneOf("What becomes of objects that it owns. Background: they are deleted after it; "+
		"Foreground: before it; Orphan: they stay.", string(metav1.DeletePropagationBackground),
		string(metav1.DeletePropagationForeground), string(metav1.DeletePropagationOrphan))
	propagation["default"] = string(metav1.DeletePropagationBackground)
	return tools.Definition{
		Name:        string(v1alpha1.BuiltInK8sDelete),
		Description: "Deletes an object of the Kubernetes cluster. A person may be asked first.",
		InputSchema: arguments.Object(map[string]any{
			"resource": resourceArgument(), "name": nameArgument(), "namespace": namespaceArgument(), "propagation": propagation,
		}, "resource", "name"),
		Traits: changing,
		Reference: tools.Reference{Offered: offeredChanges, Result: removeResult{}, Errors: append(commonErrors,
			"There is no such object.",
			"A person denied it, or the object changed after they had been asked: nothing was done.",
			"The call was interrupted by a crash, needs no approval, and may have been done."),
			Limits: []string{"The object is deleted only if it still is what a person was asked about; its status does not " +
				"count."}},
	}
}

// Run finds out whether the object can be deleted, has people asked if that is required, and deletes it once it may.
func (t remove) Run(ctx context.Context, call tools.Call) (string, error) {
	var given removeArguments
	a, err := t.begin(ctx, call, t.Definition().InputSchema, &given)
	if err != nil {
		return "", err
	}
	kind, err := a.find(ctx, given.Resource)
	if err != nil {
		return "", err
	}
	of := target{kind, a.within(kind, given.Namespace), given.Name}
	if call.Again && call.Answer == nil && !needsApproval(call.Chat, call.Name) {
		return "", onTarget(of, errors.New("the generation pod was restarted or lost when this call was due, so that the "+
			"object may have been deleted, and one of the same name may be another one. Look at it before you repeat the call"))
	}
	p, err := a.removal(ctx, of, given.Propagation)
	outcome, err := before(call.Answer, p, err)
	if err != nil {
		return "", onTarget(of, err)
	}
	if outcome == "" {
		if err := a.review(call.Name, []proposal{p}); err != nil {
			return "", err
		}
		return a.removed(ctx, p, given.Propagation)
	}
	return tools.Encode(removeResult{Object: of.title(), Outcome: outcome})
}

// before is what has become of the object before this call deletes it, such as by an earlier life of the call; empty:
// it is to be deleted, if people let it.
func before(answer *tools.Answer, p proposal, err error) (string, error) {
	approved := answer != nil && answer.Given
	switch {
	case apierrors.IsNotFound(err) && approved:
		return "gone", nil
	case err != nil:
		return "", err
	case p.done && (answer == nil || approved):
		return "deleting", nil
	}
	return "", nil
}

// removal is what deleting an object would do.
func (a *access) removal(ctx context.Context, of target, how metav1.DeletionPropagation) (p proposal, err error) {
	for range maxTries {
		if p, err = a.dryRemoval(ctx, of, how); !changedMeanwhile(err) {
			break
		}
	}
	return p, err
}

func (a *access) dryRemoval(ctx context.Context, of target, how metav1.DeletionPropagation) (p proposal, err error) {
	p = proposal{target: of}
	if p.live, err = a.object(ctx, of.kind, of.namespace, of.name); err != nil {
		return p, err
	}
	if p.live.GetDeletionTimestamp() != nil {
		p.done = true
		return p, nil
	}
	p.what = fmt.Sprintf("delete %s, created %s (propagation %s)", p.title(),
		p.live.GetCreationTimestamp().UTC().Format("2006-01-02 15:04:05Z"), how)
	if kept := p.live.GetFinalizers(); len(kept) > 0 {
		p.what += ", which goes once its finalizers are done: " + strings.Join(kept, ", ")
	}
	_, err = a.delete(ctx, &p, how, true)
	return p, err
}

// removed deletes the object, unless it changes at the same moment in more than its status.
func (a *access) removed(ctx context.Context, p proposal, how metav1.DeletionPropagation) (string, error) {
	sum, of := p.sum(a.account), p.target
	for range maxTries {
		gone, err := a.delete(ctx, &p, how, false)
		if err == nil && gone || apierrors.IsNotFound(err) {
			return tools.Encode(removeResult{Object: of.title(), Outcome: "deleted"})
		}
		if err == nil {
			return tools.Encode(removeResult{Object: of.title(), Outcome: "deleting"})
		}
		if !changedMeanwhile(err) {
			return "", onTarget(of, err)
		}
		if p, err = a.removal(ctx, of, how); err != nil {
			return "", onTarget(of, err)
		}
		if p.sum(a.account) != sum {
			break
		}
	}
	return "", onTarget(of, errors.New("the object changed at the same moment, so that it was not deleted"))
}

// delete deletes the very object that the proposal is about, or only asks whether that can be done. gone is false if
// the object has to end first.
func (a *access) delete(ctx context.Context, p *proposal, how metav1.DeletionPropagation, dry bool) (
	gone bool, err error) {
	uid, version := p.live.GetUID(), p.version()
	options := metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &how,
	}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	body, err := json.Marshal(options)
	if err != nil {
		return false, fmt.Errorf("writing what to delete: %w", err)
	}
	raw, err := a.do(ctx, kubeapi.Request{Method: http.MethodDelete, Path: p.kind.Path(p.namespace, p.name),
		Type: "application/json", Body: body})
	if err != nil {
		return false, err
	}
	var left struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(raw, &left) == nil && left.Kind == "Status", nil
}
