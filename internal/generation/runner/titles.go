// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cost"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/generation/title"
	"parley.dev/parley/internal/telemetry"
)

const (
	// titleTimeout bounds the call for a title. Nothing waits for it.
	titleTimeout = 30 * time.Second
	// maxTitles is how many titles are kept, those under way included. A title that is forgotten is none.
	maxTitles = 1024
)

// beginning names the message that a title is of, and its edition: what says something else has another title.
type beginning struct {
	chat, message types.UID
	edition       int64
}

// titles asks models for titles, each once, and keeps the answers until a step of the chat takes them along: a title has no
// write of its own. It belongs to the runner and not to an attempt, since a reply that is done first does not wait for it.
type titles struct {
	mu    sync.Mutex
	made  map[beginning]*madeTitle
	order []beginning // oldest first
	calls sync.WaitGroup
}

type madeTitle struct {
	// text is empty while the call is under way, and if nothing came of it.
	text string
	// call is what it used up; nil until it is over, and again once a step has accounted for it.
	call   *v1alpha1.TitleCall
	cancel context.CancelFunc
}

// begin asks for a title in a goroutine of its own, unless that has been done before.
func (t *titles) begin(ctx context.Context, of beginning, ask func(context.Context) (string, *v1alpha1.TitleCall)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made[of] != nil || ctx.Err() != nil {
		return
	}
	if t.made == nil {
		t.made = map[beginning]*madeTitle{}
	}
	if len(t.order) == maxTitles {
		t.made[t.order[0]].cancel()
		delete(t.made, t.order[0])
		t.order = t.order[1:]
	}
	asking, cancel := context.WithTimeout(ctx, titleTimeout)
	made := &madeTitle{cancel: cancel}
	t.made[of] = made
	t.order = append(t.order, of)
	t.calls.Go(func() {
		defer cancel()
		text, call := ask(asking)
		t.mu.Lock()
		defer t.mu.Unlock()
		made.text, made.call = text, call
	})
}

// begun is what the newest title of the chat is of; zero if none was asked for.
func (t *titles) begun(chat types.UID) beginning {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range slices.Backward(t.order) {
		if of.chat == chat {
			return of
		}
	}
	return beginning{}
}

// of is the title that was made, and the account of the call if no step has accounted for it.
func (t *titles) of(of beginning) (string, *v1alpha1.TitleCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.made[of]; made != nil {
		return made.text, made.call
	}
	return "", nil
}

// accounted says that a step has accounted for the call.
func (t *titles) accounted(of beginning) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.made[of]; made != nil {
		made.call = nil
	}
}

// abandon ends the call if it is under way, and forgets it.
func (t *titles) abandon(of beginning) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.made[of]; made != nil {
		made.cancel()
		delete(t.made, of)
		t.order = slices.DeleteFunc(t.order, func(other beginning) bool { return other == of })
	}
}

// stop ends all calls and waits for their end. No more may be begun.
func (t *titles) stop() {
	t.mu.Lock()
	for _, made := range t.made {
		made.cancel()
	}
	t.mu.Unlock()
	t.calls.Wait()
}

// entitle notes what the chat's title is of.
func (a *attempt) entitle(messages []v1alpha1.ChatMessage) {
	if a.chat.Status.History.ContextStart > 0 { // What the chat began with is not among the messages.
		a.titleOf = a.titles.begun(a.chat.UID)
		return
	}
	for i := range messages {
		if messages[i].Spec.Role == v1alpha1.RoleUser {
			a.titleOf = beginning{a.chat.UID, messages[i].UID, messages[i].Generation}
			break
		}
	}
	if a.chat.Spec.Title == "" && a.chat.Status.Title == "" {
		a.firstWords = title.FirstWords(title.Of(messages))
	}
}

// askTitle asks for a title beside the first reply, if the configuration wants one. It neither waits nor fails.
func (a *attempt) askTitle(t *target, messages []v1alpha1.ChatMessage) {
	settings, text := t.config.Spec.Titles, title.Of(messages)
	if !settings.On() || !a.lacksTitle() || a.chat.Status.History.ContextStart > 0 || title.Questions(messages) != 1 || text == "" {
		return
	}
	log := a.Log.With(a.about())
	a.titles.begin(a.lasting, a.titleOf, func(ctx context.Context) (made string, call *v1alpha1.TitleCall) {
		defer func() {
			if fault := recover(); fault != nil {
				// The fault itself can quote content.
				log.ErrorContext(ctx, "making a title failed unexpectedly", slog.String("fault", fmt.Sprintf("%T", fault)))
			}
		}()
		made, call, err := a.writeTitle(ctx, t, text)
		if err != nil {
			log.DebugContext(ctx, "no title was made", slog.Any("error", err))
		}
		return made, call
	})
}

// lacksTitle tells whether a title that a model writes would be the chat's.
func (a *attempt) lacksTitle() bool {
	return a.chat.Spec.Title == "" && a.chat.Status.TitleSource != v1alpha1.TitleFromModel
}

// writeTitle asks the model that writes titles for one. The error quotes nothing.
func (a *attempt) writeTitle(ctx context.Context, t *target, text string) (string, *v1alpha1.TitleCall, error) {
	if ref := t.config.Spec.Titles.ModelConfigRef; ref != nil && ref.Name != t.config.Name {
		var missing *v1alpha1.GenerationError
		if t, missing = a.Runner.target(ctx, ref.Name); missing != nil {
			return "", nil, fmt.Errorf("ChatModelConfig %s: %s", ref.Name, missing.Reason)
		}
	}
	spec := &t.config.Spec
	if !a.keepsBudget(spec.Pricing) {
		return "", nil, fmt.Errorf("ChatModelConfig %s has no prices in the currency of the chat's budget", t.config.Name)
	}
	answer, err := a.generateTitle(ctx, t, text, false)
	if refusesTools(err) {
		answer, err = a.generateTitle(ctx, t, text, true)
	}
	if err != nil {
		return "", nil, fmt.Errorf("calling the model of ChatModelConfig %s: %s", t.config.Name, provider.Classify(err, t.subject()).Reason)
	}
	var call *v1alpha1.TitleCall
	if usage := step.UsageOf(spec.Provider, answer.Usage); usage != (v1alpha1.TokenUsage{}) {
		call = &v1alpha1.TitleCall{Model: t.identity(), Usage: usage, Cost: cost.Of(spec.Pricing, usage)}
	}
	return title.Read(answer), call, nil
}

// keepsBudget tells whether the chat's budget, if it has one, can count what is spent at these prices.
func (a *attempt) keepsBudget(pricing *v1alpha1.Pricing) bool {
	limits := a.chat.Spec.Limits
	return limits == nil || limits.Budget == nil || pricing != nil && pricing.Currency == limits.Budget.Currency
}

// generateTitle calls the model. A title needs no thinking; a plain call leaves that to the configuration.
func (a *attempt) generateTitle(ctx context.Context, t *target, text string, plain bool) (*fantasy.Response, error) {
	spec := &t.config.Spec
	effort := spec.ReasoningEffort.Effort("")
	if effort != "" && !plain {
		effort = v1alpha1.EffortNone
	}
	call, _, err := provider.Call(spec, effort)
	if err != nil {
		return nil, err
	}
	began := a.Now()
	answer, err := t.model.Generate(ctx, title.Ask(call, text, plain))
	a.countTitle(ctx, t, answer, err, a.Now().Sub(began))
	return answer, err
}

// countTitle counts a call as any other, but for the first part, which a whole answer does not have.
func (a *attempt) countTitle(ctx context.Context, t *target, answer *fantasy.Response, err error, lasted time.Duration) {
	name, ended := string(t.config.Spec.Provider), string(v1alpha1.OutcomeCompleted)
	switch {
	case err == nil:
		a.countTokens(name, step.UsageOf(t.config.Spec.Provider, answer.Usage))
	case errors.Is(ctx.Err(), context.Canceled):
		ended = telemetry.OutcomeAbandoned
	default:
		ended = string(v1alpha1.OutcomeFailed)
	}
	a.Metrics.CallEnded(name, ended, lasted)
}

// refusesTools tells whether the call may have failed for the tool that it demands: servers that know none answer as they
// like.
func refusesTools(err error) bool {
	refusal, ok := errors.AsType[*fantasy.ProviderError](err)
	if !ok {
		return false
	}
	switch refusal.StatusCode {
	case 400, 422, 500, 501:
		return true
	}
	return false
}

// addTitle lets the result bring a title if the chat lacks one, and the account of the call for it, if the result can count.
func (a *attempt) addTitle(g *v1alpha1.MessageGeneration, o outcome) {
	made, call := a.titles.of(a.titleOf)
	switch {
	case made != "" && a.lacksTitle():
		g.Title, g.TitleSource = made, v1alpha1.TitleFromModel
	case a.firstWords != "":
		g.Title, g.TitleSource = a.firstWords, v1alpha1.TitleFromFirstWords
	}
	if o.kind == v1alpha1.OutcomeCompleted || o.kind == v1alpha1.OutcomeInterrupted && len(o.step.Parts) > 0 {
		g.TitleCall = call
	}
}

// titleReported notes that the account of the call for a title has been given.
func (a *attempt) titleReported(message *v1alpha1.ChatMessage) {
	if message.Spec.Generation.TitleCall != nil {
		a.titles.accounted(a.titleOf)
	}
}
