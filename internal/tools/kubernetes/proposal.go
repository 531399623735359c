// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
)

// proposal is what would become of an object, as people are asked about it.
type proposal struct {
	target
	// live is the object as it is; nil: there is none.
	live *unstructured.Unstructured
	// what would be done to it, in one line.
	what string
	// diff is all that would change, for people; empty: nothing, or all if the object goes. told is the same for the
	// model, without what may be values of Secrets.
	diff, told string
	// force takes over fields of others.
	force bool
	// done is true if there is nothing left to do.
	done bool
}

// version is the object's resourceVersion.
func (p *proposal) version() string {
	if p.live == nil {
		return ""
	}
	return p.live.GetResourceVersion()
}

// sum stands for what a person sees of the proposal, and for the whole of the object that it changes: but for its
// status, which changes all the time, and for the account that would do it. What has another sum is another proposal.
func (p *proposal) sum(account string) string {
	digest := sha256.New()
	fmt.Fprintf(digest, "%s\n%s\n%s\n%s\n%t\n", account, p.title(), p.what, p.diff, p.force)
	if p.live != nil {
		o := p.live.DeepCopy()
		uid, version := string(o.GetUID()), o.GetResourceVersion()
		withoutBookkeeping(o)
		delete(o.Object, "status")
		if !p.kind.IsSecret() { // Its values are not known here, but every change of them is another version.
			version = ""
		}
		raw, err := json.Marshal(o.Object)
		fmt.Fprintf(digest, "%s\n%s\n%s\n%v\n", uid, version, raw, err)
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// compare finds out what changes from the live object to another state of it. A status that nobody gave a new object is
// the API server's and no part of it.
func (p *proposal) compare(after *unstructured.Unstructured, status bool) (err error) {
	if p.live == nil && !status {
		after = after.DeepCopy()
		delete(after.Object, "status")
	}
	if p.diff, err = differ(p.live, after); err != nil {
		return err
	}
	p.told, err = differ(withoutSecrets(p.live), withoutSecrets(after))
	return err
}

// withoutSecrets is the object as the model may read it.
func withoutSecrets(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o = o.DeepCopy(); o != nil {
		withoutValues(o.Object)
	}
	return o
}

// differ is what changes from one state of an object to another, with three lines around it. Of the status it says
// something only if that changes.
func differ(before, after *unstructured.Unstructured) (string, error) {
	texts := make([]string, 2)
	states := make([]map[string]any, 2)
	for i, o := range []*unstructured.Unstructured{before, after} {
		if o != nil {
			o = o.DeepCopy()
			withoutBookkeeping(o)
			states[i] = maps.Clone(o.Object)
		}
	}
	if reflect.DeepEqual(states[0]["status"], states[1]["status"]) {
		delete(states[0], "status")
		delete(states[1], "status")
	}
	for i, state := range states {
		var err error
		if texts[i], err = text(state); err != nil {
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

// asked is how people read the proposals.
func asked(a *access, all []proposal) (text string) {
	text = fmt.Sprintf("As service account %s of namespace %s:\n", a.account, a.namespace)
	for i := range all {
		text += all[i].what + "\n" + all[i].diff
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
	}
	return printable.Visible(text)
}

// review lets a person decide about the proposals where that is required. It returns nil if what is proposed may be
// done; tools.ErrAsks if a person is asked first; else why it may not.
func (a *access) review(tool string, all []proposal) error {
	sums := make([]string, len(all))
	for i := range all {
		sums[i] = all[i].sum(a.account)
	}
	switch answer := a.call.Answer; {
	case answer != nil && !answer.Given:
		return denied(answer.Comment)
	case answer != nil:
		return same(all, sums, answer.State)
	case !needsApproval(a.call.Chat, tool):
		return nil
	}
	return a.ask(all, sums)
}

// needsApproval reports whether a person has to approve what the tool would change.
func needsApproval(chat *v1alpha1.Chat, tool string) bool {
	return chat.Spec.Kubernetes.Changes != v1alpha1.ClusterChangesWithoutApproval ||
		toolpolicy.NeedsApproval(chat.Spec.Tools, tool)
}

func (a *access) ask(all []proposal, sums []string) error {
	state, err := json.Marshal(sums)
	if err != nil {
		return fmt.Errorf("writing down what was asked: %w", err)
	}
	q := tools.Question{Proposal: asked(a, all), State: string(state)}
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

func denied(comment string) error {
	words := "A person denied this change, so nothing was done."
	if comment != "" {
		words += " They said: " + comment
	}
	return errors.New(words)
}

// same is why what is proposed now is not what was approved; nil if it is, as far as it is not done already.
func same(all []proposal, sums []string, state string) error {
	var approved []string
	if json.Unmarshal([]byte(state), &approved) != nil || len(approved) != len(sums) {
		return errors.New("nothing was done: what was approved can no longer be read. Make the call again")
	}
	for i := range all {
		if !all[i].done && sums[i] != approved[i] {
			return fmt.Errorf("%s changed since it was shown to a person, or would be changed in another way by now: what they "+
				"approved was not done, unless this call was interrupted and it was done then. Look at it, and make the call "+
				"again if it is still needed", all[i].title())
		}
	}
	return nil
}
