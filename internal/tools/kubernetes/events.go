// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

const (
	// defaultEvents is how many events are shown, maxEvents the most.
	defaultEvents, maxEvents = 20, 200
	// The newest events are found in the first maxPages pages of eventPage events.
	maxPages, eventPage = 8, 500
)

type eventsArguments struct {
	objectArguments
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

var eventsDefinition = tools.Definition{
	Name:        string(v1alpha1.BuiltInK8sEvents),
	Description: "Reads the events of a namespace, or those about an object, the newest first.",
	InputSchema: arguments.Object(map[string]any{
		"resource":  arguments.Text(1, maxName, "Only events about an object of this kind, as kubectl takes it."),
		"name":      arguments.Text(1, maxName, "The name of that object."),
		"namespace": namespaceArgument,
		"limit":     arguments.Integer(1, maxEvents, defaultEvents, "How many to show."),
	}),
	Traits: reading,
	Reference: tools.Reference{Offered: offered, Result: eventsResult{},
		Limits: []string{fmt.Sprintf("The newest are found among the first %d that the API server lists.",
			maxPages*eventPage),
			"A message is shown up to 1024 characters, which is as long as the API lets one be.",
			"Those about objects without a namespace are in the namespace `default`."}},
}

func events(ctx context.Context, a *access, args eventsArguments) (string, error) {
	if (args.Resource == "") != (args.Name == "") {
		return "", errors.New("the call was not made: give resource and name, or neither")
	}
	namespace, selector := cmp.Or(args.Namespace, a.namespace), ""
	if args.Name != "" {
		about, err := a.find(ctx, args.objectArguments)
		if err != nil {
			return "", err
		}
		namespace, selector = eventsAbout(about)
	}
	all, more, err := a.events(ctx, namespace, selector)
	if err != nil {
		return "", err
	}
	shown := all[:min(args.Limit, len(all))]
	return tools.FitLines(a.call.Chat, len(shown), func(lines, _ int) any {
		return eventsResult{Events: shown[:lines], Older: len(all) - lines, More: more}
	})
}

// eventsAbout is the namespace and the field selector of the events about an object.
func eventsAbout(t target) (namespace, selector string) {
	of := fields.Set{"involvedObject.kind": t.kind.Kind, "involvedObject.name": t.name}
	return cmp.Or(t.namespace, "default"), of.AsSelector().String()
}

// event is the part of core/v1 Event that is shown.
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
	Series    struct {
		Count    int       `json:"count"`
		LastSeen time.Time `json:"lastObservedTime"`
	} `json:"series"`
}

// last is when it was seen last.
func (e *event) last() time.Time {
	return cmp.Or(e.Series.LastSeen, e.LastSeen, e.EventTime, e.Metadata.Created)
}

func (e *event) line() eventLine {
	count := max(e.Count, e.Series.Count)
	if count == 1 {
		count = 0
	}
	return eventLine{Last: e.last().UTC().Format(time.RFC3339), Count: count, Type: cell(e.Type), Reason: cell(e.Reason),
		About: cell(e.About.Kind + "/" + e.About.Name), Message: cell(e.Message)}
}

// events are those of a namespace that the field selector selects, the newest first; more: there are others.
func (a *access) events(ctx context.Context, namespace, selector string) (lines []eventLine, more bool, err error) {
	var all []event
	next := ""
	for range maxPages {
		raw, err := a.do(ctx, kubeapi.Request{Path: []string{"api", "v1", "namespaces", namespace, "events"},
			Query: query(map[string]string{"limit": fmt.Sprint(eventPage), "fieldSelector": selector, "continue": next})})
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
