// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// maxTries bounds the attempts to change an object that others change at the same moment.
const maxTries = 5

// change is a change of one object.
type change interface {
	dryRun(ctx context.Context, a *access) (proposal, error)
	// perform changes the version of the object that the proposal is about.
	perform(ctx context.Context, a *access, p *proposal) error
}

// proposal is the result of a dry run, which people approve.
type proposal struct {
	target
	// live is the object as it is; nil: there is none.
	live *unstructured.Unstructured
	// what would be done to it, in one line.
	what string
	// diff has all that would change, for people. It is empty for a deletion. redactedDiff is the same for the model,
	// without values of Secrets.
	diff, redactedDiff string
	// force takes over fields of others.
	force bool
	// done is true if there is nothing left to do, gone if the object was deleted.
	done, gone bool
}

// propose makes a dry run, again if the object changes meanwhile.
func (a *access) propose(ctx context.Context, c change) (p proposal, err error) {
	for range maxTries {
		if p, err = c.dryRun(ctx, a); !changedMeanwhile(err) {
			break
		}
	}
	return p, err
}

// perform makes a proposed change. If the object changes meanwhile, it makes the change if the proposal stays the same,
// because only the status of the object differs.
func (a *access) perform(ctx context.Context, c change, p proposal) (proposal, error) {
	hash := p.hash(a.account)
	for range maxTries {
		if p.done {
			return p, nil
		}
		err := c.perform(ctx, a, &p)
		if !changedMeanwhile(err) {
			return p, err
		}
		if p, err = a.propose(ctx, c); err != nil {
			return p, err
		}
		if !p.done && p.hash(a.account) != hash {
			break
		}
	}
	return p, errors.New("the object changed at the same moment, so that this was not done: look at it, and call again " +
		"if it is still needed")
}

// changedMeanwhile reports whether a write failed because of another one at the same moment.
func changedMeanwhile(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) && len(conflictsOf(err)) == 0
}

// hash identifies what a person approves: the account, the change, and the object without its status.
func (p *proposal) hash(account string) string {
	digest := sha256.New()
	fmt.Fprintf(digest, "%s\n%s\n%s\n%s\n%t\n", account, p.title(), p.what, p.diff, p.force)
	if p.live != nil {
		o := p.live.DeepCopy()
		uid, version := string(o.GetUID()), o.GetResourceVersion()
		removeBookkeeping(o)
		delete(o.Object, "status")
		if !p.kind.IsSecret() { // The values of a Secret are redacted, but every change of them has another version.
			version = ""
		}
		raw, err := json.Marshal(o.Object)
		fmt.Fprintf(digest, "%s\n%s\n%s\n%v\n", uid, version, raw, err)
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// compare sets the diffs from the live object to another state of it. A new object has a status in them only if the
// manifest has one.
func (p *proposal) compare(after *unstructured.Unstructured, status bool) (err error) {
	if p.live == nil && !status {
		after = after.DeepCopy()
		delete(after.Object, "status")
	}
	if p.diff, err = diff(p.live, after, func(any) {}); err != nil {
		return err
	}
	p.redactedDiff, err = diff(p.live, after, removeSecrets)
	return err
}

// diff is the unified diff of two states of an object, either of which may be nil. It has the status only if that
// changes.
func diff(before, after *unstructured.Unstructured, redact func(any)) (string, error) {
	var texts [2]string
	var states [2]map[string]any
	for i, o := range []*unstructured.Unstructured{before, after} {
		if o != nil {
			o = o.DeepCopy()
			redact(o.Object)
			removeBookkeeping(o)
			states[i] = o.Object
		}
	}
	if reflect.DeepEqual(states[0]["status"], states[1]["status"]) {
		delete(states[0], "status")
		delete(states[1], "status")
	}
	for i, state := range states {
		var err error
		if texts[i], err = encodeYAML(state); err != nil {
			return "", err
		}
	}
	unified := udiff.Unified("", "", texts[0], texts[1])
	_, hunks, _ := strings.Cut(unified, "\n@@")
	if hunks == "" {
		return "", nil
	}
	return "@@" + hunks, nil
}

// proposalText describes the proposals to people.
func (a *access) proposalText(all []proposal) (text string) {
	text = fmt.Sprintf("As service account %s of namespace %s:\n", a.account, a.namespace)
	for i := range all {
		text += all[i].what + "\n" + all[i].diff
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
	}
	return printable.Visible(text)
}

// review asks people about the proposals if that is required. It returns nil if they may be carried out, and
// tools.ErrAsks if people are asked first.
func (a *access) review(all []proposal) error {
	answer := a.call.Answer
	if answer != nil && !answer.Given {
		words := "A person denied this change, so nothing was done."
		if answer.Comment != "" {
			words += " They said: " + answer.Comment
		}
		return errors.New(words)
	}
	if !slices.ContainsFunc(all, func(p proposal) bool { return !p.done }) {
		return nil
	}
	hashes := make([]string, len(all))
	for i := range all {
		hashes[i] = all[i].hash(a.account)
	}
	switch {
	case answer != nil:
		return checkApproved(all, hashes, answer.State)
	case a.needsApproval():
		return a.ask(all, hashes)
	}
	return nil
}

// needsApproval reports whether a person has to approve the change of the call.
func (a *access) needsApproval() bool {
	chat := a.call.Chat
	return chat.Spec.Kubernetes.Changes != v1beta1.ClusterChangesWithoutApproval ||
		toolpolicy.NeedsApproval(chat.Spec.Tools, a.call.Name)
}

func (a *access) ask(all []proposal, hashes []string) error {
	state, err := tools.Encode(hashes)
	if err != nil {
		return err
	}
	q := tools.Question{Proposal: a.proposalText(all), State: state}
	switch most := v1beta1.MaxProposal; {
	case len(q.Proposal) > most:
		return fmt.Errorf("nothing was done: a person must approve this, and what would change has %d bytes, more than the "+
			"%d that people are shown. Change less at once", len(q.Proposal), most)
	case !a.call.Ask(q):
		return fmt.Errorf("nothing was done: the calls of one reply can ask people about at most %d things. Make this call "+
			"in your next reply", v1beta1.MaxToolQuestions)
	}
	return tools.ErrAsks
}

// checkApproved returns an error unless the approved state has the hashes of all proposals that are not done already.
func checkApproved(all []proposal, hashes []string, state string) error {
	var approved []string
	if json.Unmarshal([]byte(state), &approved) != nil || len(approved) != len(hashes) {
		return errors.New("nothing was done: what was approved can no longer be read. Make the call again")
	}
	for i := range all {
		if !all[i].done && hashes[i] != approved[i] {
			return fmt.Errorf("%s changed since it was shown to a person, or would be changed in another way by now: what they "+
				"approved was not done, unless this call was interrupted and it was done then. Look at it, and make the call "+
				"again if it is still needed", all[i].title())
		}
	}
	return nil
}

type deleteArguments struct {
	objectArguments
	Propagation metav1.DeletionPropagation `json:"propagation"`
}

type deleteResult struct {
	Object  string `json:"object" doc:"Its kind, name and namespace."`
	Outcome string `json:"outcome" doc:"\"deleted\", \"gone\" before that, or \"deleting\": it goes once it has ended."`
}

var deleteDefinition = tools.Definition{
	Name:        string(v1beta1.BuiltInK8sDelete),
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
	if a.call.Again && a.call.Answer == nil && !a.needsApproval() {
		return "", t.wrap(errors.New("the generation pod was restarted or lost when this call was due, so that the " +
			"object may have been deleted, and one of the same name may be another one. Look at it before you repeat the call"))
	}
	outcome, err := deletion{t, args.Propagation}.run(ctx, a)
	if err != nil {
		return "", err
	}
	return tools.Encode(deleteResult{Object: t.title(), Outcome: outcome})
}

// deletion deletes an object.
type deletion struct {
	target
	propagation metav1.DeletionPropagation
}

// run deletes the object and returns what became of it.
func (d deletion) run(ctx context.Context, a *access) (outcome string, err error) {
	p, err := a.propose(ctx, d)
	if answer := a.call.Answer; apierrors.IsNotFound(err) && answer != nil && answer.Given {
		return "gone", nil // An earlier run of the call deleted it.
	}
	if err != nil {
		return "", d.wrap(err)
	}
	if err := a.review([]proposal{p}); err != nil {
		return "", err
	}
	p, err = a.perform(ctx, d, p)
	switch {
	case err != nil:
		return "", d.wrap(err)
	case p.gone:
		return "deleted", nil
	}
	return "deleting", nil
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
