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
	"reflect"
	"slices"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
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
	return chat.Spec.Kubernetes.Changes != v1alpha1.ClusterChangesWithoutApproval ||
		toolpolicy.NeedsApproval(chat.Spec.Tools, a.call.Name)
}

func (a *access) ask(all []proposal, hashes []string) error {
	state, err := tools.Encode(hashes)
	if err != nil {
		return err
	}
	q := tools.Question{Proposal: a.proposalText(all), State: state}
	switch most := v1alpha1.MaxProposal; {
	case len(q.Proposal) > most:
		return fmt.Errorf("nothing was done: a person must approve this, and what would change has %d bytes, more than the "+
			"%d that people are shown. Change less at once", len(q.Proposal), most)
	case !a.call.Ask(q):
		return fmt.Errorf("nothing was done: the calls of one reply can ask people about at most %d things. Make this call "+
			"in your next reply", v1alpha1.MaxToolQuestions)
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
