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
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// describedEvents and describedPods are how many k8s_describe shows.
const describedEvents, describedPods = 15, 50

type getResult struct {
	Object string `json:"object" doc:"The object as YAML, without managedFields."`
}

var getDefinition = tools.Definition{
	Name:        string(v1beta1.BuiltInK8sGet),
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
	Name: string(v1beta1.BuiltInK8sDescribe),
	Description: "Reads an object of the Kubernetes cluster, the newest events about it, and the pods that it selects. " +
		"Begin with it to find out why something does not work.",
	InputSchema: getDefinition.InputSchema,
	Traits:      reading,
	Reference: tools.Reference{Offered: offered, Result: describeResult{},
		Limits: []string{fmt.Sprintf("At most %d events and %d pods, which take at most a quarter of the result each.",
			describedEvents, describedPods)}},
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
	pods, err := a.selectedPods(ctx, object)
	note("pods", err)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	// The model cannot ask for fewer of them. The object has the rest of the result.
	room := tools.ResultLimitOf(a.call.Chat) / 4
	result.Events = append(result.Events, all[:min(describedEvents, fittingEvents(all, room))]...)
	result.Pods = tools.Truncate(pods, room)
	return a.fitYAML(object, func(text string) any {
		result.Object = text
		return result
	})
}

// fittingEvents is how many of the first events have so many bytes as JSON at most.
func fittingEvents(all []eventLine, room int) int {
	for i := range all {
		text, err := tools.Encode(all[i])
		if room -= len(text) + 1; err != nil || room < 0 {
			return i
		}
	}
	return len(all)
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
	Name:        string(v1beta1.BuiltInK8sEvents),
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

const (
	// defaultLines is how many lines are read, maxLines the most.
	defaultLines, maxLines = 200, 5000
	// maxSince is in seconds: a year.
	maxSince = 366 * 24 * 3600
	// maxLogBytes limits the response of the API server: 4 MiB.
	maxLogBytes = 4 << 20
)

type logsArguments struct {
	Pod        string `json:"pod"`
	Namespace  string `json:"namespace"`
	Container  string `json:"container"`
	Previous   bool   `json:"previous"`
	Tail       int    `json:"tail_lines"`
	Since      int    `json:"since_seconds"`
	Timestamps bool   `json:"timestamps"`
}

type logsResult struct {
	Lines  string `json:"lines" doc:"The lines."`
	Cut    bool   `json:"cut,omitempty" doc:"Whether lines before these do not fit into a result."`
	Newest bool   `json:"newest_missing,omitempty" doc:"Whether the newest are missing, beyond 4 MiB: ask for fewer."`
}

var logsDefinition = tools.Definition{
	Name:        string(v1beta1.BuiltInK8sLogs),
	Description: "Reads the newest lines that a container of a pod has written.",
	InputSchema: arguments.Object(map[string]any{
		"pod": arguments.Text(1, maxName, "The name of the pod."), "namespace": namespaceArgument,
		"container":     arguments.Text(1, maxName, "The container. Default: the only one."),
		"previous":      arguments.Boolean("Whether to read what it wrote before it was restarted."),
		"tail_lines":    arguments.Integer(1, maxLines, defaultLines, "How many lines."),
		"since_seconds": arguments.Integer(0, maxSince, 0, "Only lines of the last seconds. 0: all."),
		"timestamps":    arguments.Boolean("Whether each line begins with its time."),
	}, "pod"),
	Traits: reading,
	Reference: tools.Reference{Offered: offered, Result: logsResult{}, Errors: []string{
		"The pod has several containers and none is named, or the container has written nothing yet."},
		Limits: []string{"What a container writes is shown as it is, whatever it says."}},
}

func logs(ctx context.Context, a *access, args logsArguments) (string, error) {
	parameters := map[string]string{"tailLines": fmt.Sprint(args.Tail), "limitBytes": fmt.Sprint(maxLogBytes),
		"container": args.Container}
	if args.Since > 0 {
		parameters["sinceSeconds"] = fmt.Sprint(args.Since)
	}
	if args.Previous {
		parameters["previous"] = "true"
	}
	if args.Timestamps {
		parameters["timestamps"] = "true"
	}
	raw, err := a.do(ctx, kubeapi.Request{
		Path:  []string{"api", "v1", "namespaces", cmp.Or(args.Namespace, a.namespace), "pods", args.Pod, "log"},
		Query: query(parameters), Accept: "text/plain, application/json",
	})
	if err != nil {
		return "", err
	}
	lines := strings.ToValidUTF8(string(raw), "\uFFFD")
	return tools.Fit(a.call.Chat, tools.MaxResultBytes, func(most int) any {
		shown := clip.LastBytes(lines, most)
		if len(shown) < len(lines) {
			if _, whole, found := strings.Cut(shown, "\n"); found {
				shown = whole
			}
		}
		return logsResult{Lines: shown, Cut: len(shown) < len(lines), Newest: len(raw) >= maxLogBytes}
	})
}
