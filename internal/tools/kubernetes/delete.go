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

type deleteArguments struct {
	objectArguments
	Propagation metav1.DeletionPropagation `json:"propagation"`
}

type deleteResult struct {
	Object  string `json:"object" doc:"Its kind, name and namespace."`
	Outcome string `json:"outcome" doc:"\"deleted\", \"gone\" before that, or \"deleting\": it goes once it has ended."`
}

var deleteDefinition = tools.Definition{
	Name:        string(v1alpha1.BuiltInK8sDelete),
	Description: "Deletes an object of the Kubernetes cluster. A person may be asked first.",
	InputSchema: arguments.Object(map[string]any{
		"resource": resourceArgument, "name": nameArgument, "namespace": namespaceArgument,
		"propagation": map[string]any{"type": "string", "default": string(metav1.DeletePropagationBackground),
			"enum": []string{string(metav1.DeletePropagationBackground), string(metav1.DeletePropagationForeground),
				string(metav1.DeletePropagationOrphan)},
			"description": "What becomes of objects that it owns. Background: they are deleted after it; " +
				"Foreground: before it; Orphan: they stay."},
	}, "resource", "name"),
	Traits: changing,
	Reference: tools.Reference{Offered: offeredChanges, Result: deleteResult{}, Errors: []string{
		"There is no such object.",
		"A person denied it, or the object changed after they had been asked: nothing was done.",
		"The call was interrupted by a crash, needs no approval, and may have been done."},
		Limits: []string{"The object is deleted only if it still is what a person was asked about; its status does not " +
			"count."}},
}

// remove makes a dry run, asks people for approval if that is required, and deletes the object after it.
func remove(ctx context.Context, a *access, args deleteArguments) (string, error) {
	t, err := a.find(ctx, args.objectArguments)
	if err != nil {
		return "", err
	}
	answer := a.call.Answer
	if a.call.Again && answer == nil && !a.needsApproval() {
		return "", t.wrap(errors.New("the generation pod was restarted or lost when this call was due, so that the " +
			"object may have been deleted, and one of the same name may be another one. Look at it before you repeat the call"))
	}
	change := deletion{t, args.Propagation}
	p, err := a.propose(ctx, change)
	switch {
	case apierrors.IsNotFound(err) && answer != nil && answer.Given: // An earlier run of the call deleted it.
		return tools.Encode(deleteResult{Object: t.title(), Outcome: "gone"})
	case err != nil:
		return "", t.wrap(err)
	}
	if err := a.review([]proposal{p}); err != nil {
		return "", err
	}
	if p, err = a.perform(ctx, change, p); err != nil {
		return "", t.wrap(err)
	}
	result := deleteResult{Object: t.title(), Outcome: "deleting"}
	if p.gone {
		result.Outcome = "deleted"
	}
	return tools.Encode(result)
}

// deletion deletes an object.
type deletion struct {
	target
	propagation metav1.DeletionPropagation
}

// dryRun implements change.
func (d deletion) dryRun(ctx context.Context, a *access) (p proposal, err error) {
	p = proposal{target: d.target}
	if p.live, err = a.readRedacted(ctx, d.target); err != nil {
		return p, err
	}
	if p.live.GetDeletionTimestamp() != nil {
		p.done = true
		return p, nil
	}
	p.what = fmt.Sprintf("delete %s, created %s (propagation %s)", p.title(),
		p.live.GetCreationTimestamp().UTC().Format("2006-01-02 15:04:05Z"), d.propagation)
	if finalizers := p.live.GetFinalizers(); len(finalizers) > 0 {
		p.what += ", which goes once its finalizers are done: " + strings.Join(finalizers, ", ")
	}
	return p, d.request(ctx, a, &p, metav1.DryRunAll)
}

// perform implements change.
func (d deletion) perform(ctx context.Context, a *access, p *proposal) error {
	err := d.request(ctx, a, p)
	if apierrors.IsNotFound(err) {
		p.gone, err = true, nil
	}
	return err
}

// request deletes the version of the object that the proposal is about, or makes a dry run.
func (d deletion) request(ctx context.Context, a *access, p *proposal, dryRun ...string) error {
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, DryRun: dryRun,
		Preconditions: &metav1.Preconditions{UID: new(p.live.GetUID()), ResourceVersion: new(p.live.GetResourceVersion())},

		PropagationPolicy: &d.propagation,
	})
	if err != nil {
		return fmt.Errorf("writing what to delete: %w", err)
	}
	raw, err := a.do(ctx, kubeapi.Request{Method: http.MethodDelete, Path: d.kind.Path(d.namespace, d.name),
		Type: "application/json", Body: body})
	if err != nil {
		return err
	}
	var answer metav1.TypeMeta // A Status, or the object if it has to end first.
	p.gone = json.Unmarshal(raw, &answer) == nil && answer.Kind == "Status"
	return nil
}
