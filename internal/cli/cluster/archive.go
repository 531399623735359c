// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/internal/cli/doctor"
)

// Limits of a support archive: the objects of a resource, and the lines and bytes of the log of a container.
const (
	maxArchived = 5000
	maxLogLines = 10_000
	maxLogBytes = 16 << 20
)

// archive is a tar file of which parts may be missing.
type archive struct {
	to      *tar.Writer
	now     time.Time
	missing []string
	failed  error
}

// WriteArchive writes a support archive, as a compressed tar file. It has no content of messages and no keys. The parts
// that could not be read are returned, and listed in errors.txt of the archive.
func (i Installation) WriteArchive(ctx context.Context, to io.Writer, f *doctor.Facts, r *doctor.Report) ([]string,
	error) {
	compressed := gzip.NewWriter(to)
	a := &archive{to: tar.NewWriter(compressed), now: f.Now}
	a.addJSON("report.json", r, nil)
	a.addJSON("versions.json", map[string]any{"plugin": f.Plugin, "kubernetes": f.Kubernetes}, nil)
	for _, r := range doctor.Archived() {
		from := strings.NewReplacer("NAMESPACE", f.Namespace, "SYSTEM", f.System).Replace(r.Path)
		objects, err := i.selectObjects(ctx, &r, from)
		a.addJSON(path.Join("objects", from)+".json", objects, err)
	}
	for _, pod := range slices.Concat(f.Pods.Items, f.Generation.Items) {
		i.addLogs(ctx, a, &pod)
	}
	a.add("errors.txt", []byte(strings.Join(a.missing, "\n")), nil)
	if err := cmp.Or(a.failed, a.to.Close(), compressed.Close(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("writing the support archive: %w", err)
	}
	return a.missing, nil
}

// add adds a file, with what was read before the error.
func (a *archive) add(name string, content []byte, err error) {
	if err != nil {
		a.missing = append(a.missing, fmt.Sprintf("%s: %v", name, err))
	}
	if a.failed == nil {
		a.failed = a.to.WriteHeader(&tar.Header{Name: "parley/" + name, Mode: 0o600, Size: int64(len(content)),
			ModTime: a.now})
	}
	if a.failed == nil {
		_, a.failed = a.to.Write(content)
	}
}

func (a *archive) addJSON(name string, value any, err error) {
	content, encodeErr := json.MarshalIndent(value, "", "  ")
	a.add(name, content, cmp.Or(err, encodeErr))
}

// selectObjects reads the objects of a resource, with some of their fields.
func (i Installation) selectObjects(ctx context.Context, r *doctor.Resource, from string) (all []any, err error) {
	for next := ""; ; {
		var page struct {
			Metadata struct{ Continue string }
			Items    []map[string]any
		}
		err := i.read(ctx, from, &page, "labelSelector", r.Selector, "limit", strconv.Itoa(MessagePage), "continue", next)
		for _, object := range page.Items {
			if selected := r.Select(object); selected != nil {
				all = append(all, selected)
			}
		}
		if next = page.Metadata.Continue; err != nil || next == "" {
			return all, err
		}
		if len(all) >= maxArchived {
			return all, fmt.Errorf("there are more than %d objects", maxArchived)
		}
	}
}

// loggedContainers are those whose logs have no content of messages.
var loggedContainers = []string{doctor.Manager, doctor.Gateway, "generator", "relay"}

// addLogs adds the logs of the containers of a pod, and those before their last restart.
func (i Installation) addLogs(ctx context.Context, a *archive, pod *corev1.Pod) {
	for _, c := range pod.Status.ContainerStatuses {
		for _, previous := range []bool{false, true}[:1+min(1, c.RestartCount)] {
			if !slices.Contains(loggedContainers, c.Name) {
				continue
			}
			log, err := i.Dialer.Core.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.Name,
				Previous: previous, TailLines: new(int64(maxLogLines)), LimitBytes: new(int64(maxLogBytes))}).DoRaw(ctx)
			name := fmt.Sprintf("logs/%s/%s/%s.log", pod.Namespace, pod.Name, c.Name)
			if previous {
				name += ".previous"
			}
			a.add(name, log, err)
		}
	}
}
