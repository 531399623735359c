// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// events reads events.
type events struct{ *common }

const (
	// defaultEvents is how many events are shown, maxEvents the most.
	defaultEvents, maxEvents = 20, 200
	// eventPages is how many pages of eventPage events are looked through for the newest ones: 4000.
	eventPages, eventPage = 8, 500
)

type eventsArguments struct {
	named
	Limit int `json:"limit"`
}

type eventLine struct {
	Last    string `json:"last" doc:"When it was seen last."`
	Count   int    `json:"count,omitempty" doc:"How often it was seen, if more than once."`
	Type    string `json:"type" doc:"Normal or Warning."`
	Reason  string `json:"reason" doc:"Why."`
	About   string `json:"about" doc:"The kind and name of the object."`
	Message string `json:"message" doc:"What was seen."`
}

type eventsResult struct {
	Events []eventLine `json:"events" doc:"The events."`
	Older  int         `json:"older,omitempty" doc:"How many older ones are not shown."`
	More   bool        `json:"not_all_seen,omitempty" doc:"Whether newer ones may be among those that were not seen."`
}

func (events) Definition() tools.Definition {
	return tools.Definition{
		Name:        string(v1alpha1.BuiltInK8sEvents),
		Description: "Reads the events of a namespace, or those about an object, the newest first.",
		InputSchema: arguments.Object(map[string]any{
			"resource":  arguments.Text(1, maxName, "Only events about an object of this kind, as kubectl takes it."),
			"name":      arguments.Text(1, maxName, "The name of that object."),
			"namespace": namespaceArgument(),
			"limit":     arguments.Integer(1, maxEvents, defaultEvents, "How many to show."),
		}),
		Traits: reading,
		Reference: tools.Reference{Offered: offered, Result: eventsResult{}, Errors: commonErrors,
			Limits: []string{fmt.Sprintf("The newest are found among the first %d that the API server lists.",
				eventPages*eventPage),
				"A message is shown up to 1024 characters, which is as long as the API lets one be.",
				"Those about objects without a namespace are in the namespace `default`."}},
	}
}

// Run reads them.
func (t events) Run(ctx context.Context, call tools.Call) (string, error) {
	var given eventsArguments
	a, err := t.begin(ctx, call, t.Definition().InputSchema, &given)
	if err != nil {
		return "", err
	}
	if (given.Resource == "") != (given.Name == "") {
		return "", errors.New("the call was not made: give resource and name, or neither")
	}
	namespace, selector := cmp.Or(given.Namespace, a.namespace), fields.Everything()
	if given.Name != "" {
		kind, err := a.find(ctx, given.Resource)
		if err != nil {
			return "", err
		}
		namespace, selector = about(kind, a.within(kind, given.Namespace), given.Name)
	}
	all, more, err := a.events(ctx, namespace, selector)
	if err != nil {
		return "", err
	}
	shown := all[:min(given.Limit, len(all))]
	return tools.FitLines(call.Chat, len(shown), func(lines, _ int) any {
		return eventsResult{Events: shown[:lines], Older: len(all) - lines, More: more}
	})
}

// about is where the events about an object are, and which they are.
func about(kind *kubeapi.Kind, namespace, name string) (string, fields.Selector) {
	of := fields.Set{"involvedObject.kind": kind.Kind, "involvedObject.name": name}
	return cmp.Or(namespace, "default"), of.AsSelector()
}

// event is core/v1 Event, as far as it is shown.
type event struct {
	Metadata struct {
		Created time.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
	About  struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"involvedObject"`
	Message   string    `json:"message"`
	Count     int       `json:"count"`
	LastSeen  time.Time `json:"lastTimestamp"`
	EventTime time.Time `json:"eventTime"`
	Series    *struct {
		Count    int       `json:"count"`
		LastSeen time.Time `json:"lastObservedTime"`
	} `json:"series"`
}

// last is when it was seen last.
func (e *event) last() time.Time {
	if e.Series != nil && !e.Series.LastSeen.IsZero() {
		return e.Series.LastSeen
	}
	for _, at := range []time.Time{e.LastSeen, e.EventTime} {
		if !at.IsZero() {
			return at
		}
	}
	return e.Metadata.Created
}

func (e *event) line() eventLine {
	count := e.Count
	if e.Series != nil {
		count = max(count, e.Series.Count)
	}
	if count == 1 {
		count = 0
	}
	return eventLine{Last: e.last().UTC().Format(time.RFC3339), Count: count, Type: cell(e.Type), Reason: cell(e.Reason),
		About: cell(e.About.Kind + "/" + e.About.Name), Message: cell(e.Message)}
}

// events are those of a namespace that the selector selects, the newest first; more: there are others.
func (a *access) events(ctx context.Context, namespace string, selector fields.Selector) (lines []eventLine, more bool,
	err error) {
	var all []event
	next := ""
	for range eventPages {
		query := url.Values{"limit": {strconv.Itoa(eventPage)}, "fieldSelector": {selector.String()}}
		if next != "" {
			query.Set("continue", next)
		}
		raw, err := a.do(ctx, kubeapi.Request{Path: []string{"api", "v1", "namespaces", namespace, "events"}, Query: query})
		if err != nil {
			return nil, false, err
		}
		var listed struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []event `json:"items"`
		}
		if err := json.Unmarshal(raw, &listed); err != nil {
			return nil, false, errors.New("the API server answers with what is no list of events")
		}
		all = append(all, listed.Items...)
		if next = listed.Metadata.Continue; next == "" {
			break
		}
	}
	slices.SortStableFunc(all, func(x, y event) int { return y.last().Compare(x.last()) })
	lines = make([]eventLine, len(all))
	for i := range all {
		lines[i] = all[i].line()
	}
	return lines, next != "", nil
}
