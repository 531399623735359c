// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// logs reads what a container has written.
type logs struct{ *common }

const (
	// defaultLines is how many lines are read, maxLines the most.
	defaultLines, maxLines = 200, 5000
	// maxSince is the longest ago that can be asked for: a year.
	maxSince = 366 * 24 * 3600
	// maxLogBytes is the most that the API server is to send: 4 MiB.
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
	Lines string `json:"lines" doc:"The lines."`
	Cut   bool   `json:"cut,omitempty" doc:"Whether lines before these do not fit into a result."`
	// Newest is about what the API server leaves out.
	Newest bool `json:"newest_missing,omitempty" doc:"Whether the newest are missing, beyond 4 MiB: ask for fewer."`
}

func (logs) Definition() tools.Definition {
	return tools.Definition{
		Name:        string(v1alpha1.BuiltInK8sLogs),
		Description: "Reads the newest lines that a container of a pod has written.",
		InputSchema: arguments.Object(map[string]any{
			"pod": arguments.Text(1, maxName, "The name of the pod."), "namespace": namespaceArgument(),
			"container":     arguments.Text(1, maxName, "The container. Default: the only one."),
			"previous":      arguments.Boolean("Whether to read what it wrote before it was restarted."),
			"tail_lines":    arguments.Integer(1, maxLines, defaultLines, "How many lines."),
			"since_seconds": arguments.Integer(0, maxSince, 0, "Only lines of the last seconds. 0: all."),
			"timestamps":    arguments.Boolean("Whether each line begins with its time."),
		}, "pod"),
		Traits: reading,
		Reference: tools.Reference{Offered: offered, Result: logsResult{}, Errors: append(commonErrors,
			"The pod has several containers and none is named, or the container has written nothing yet."),
			Limits: []string{"What a container writes is shown as it is, whatever it says."}},
	}
}

// Run reads them.
func (t logs) Run(ctx context.Context, call tools.Call) (string, error) {
	var given logsArguments
	a, err := t.begin(ctx, call, t.Definition().InputSchema, &given)
	if err != nil {
		return "", err
	}
	namespace := given.Namespace
	if namespace == "" {
		namespace = a.namespace
	}
	raw, err := a.do(ctx, kubeapi.Request{
		Path: []string{"api", "v1", "namespaces", namespace, "pods", given.Pod, "log"}, Query: given.query(),
		Accept: "text/plain, application/json",
	})
	if err != nil {
		return "", err
	}
	return newest(a, strings.ToValidUTF8(string(raw), "\uFFFD"), len(raw) >= maxLogBytes)
}

func (given *logsArguments) query() url.Values {
	query := url.Values{"tailLines": {strconv.Itoa(given.Tail)}, "limitBytes": {strconv.Itoa(maxLogBytes)}}
	if given.Container != "" {
		query.Set("container", given.Container)
	}
	if given.Since > 0 {
		query.Set("sinceSeconds", strconv.Itoa(given.Since))
	}
	if given.Previous {
		query.Set("previous", "true")
	}
	if given.Timestamps {
		query.Set("timestamps", "true")
	}
	return query
}

// newest is a result with as many of the newest lines as fit.
func newest(a *access, lines string, missing bool) (string, error) {
	return tools.Fit(a.call.Chat, tools.MaxResultBytes, func(most int) any {
		shown := clip.LastBytes(lines, most)
		if cut := len(shown) < len(lines); cut {
			_, whole, found := strings.Cut(shown, "\n")
			if found {
				shown = whole
			}
		}
		return logsResult{Lines: shown, Cut: len(shown) < len(lines), Newest: missing}
	})
}
