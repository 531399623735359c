// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

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
	Name:        string(v1alpha1.BuiltInK8sLogs),
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
