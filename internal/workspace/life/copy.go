// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podstate"
	"parley.dev/parley/internal/workspace/template"
)

// CopyPatience is how long the files of another workspace may take to be copied before a person is told.
const CopyPatience = 30 * time.Minute

// Copied reports whether the pod has copied the files of another workspace.
func (f *Facts) Copied() bool {
	return f.OwnsPod() && template.IsCopier(f.Pod) && f.Pod.Status.Phase == corev1.PodSucceeded &&
		f.Workspace.IsCopying()
}

// superviseCopy makes the plan for the pod that copies the files of another workspace. It is removed after the status
// says that it is done.
func superviseCopy(f *Facts) Plan {
	switch {
	case !f.Workspace.IsCopying():
		return stopping(RemovePod, "the pod that copied its files is being removed")
	case f.Copied():
		return copying("its files are copied")
	case f.hasEnded():
		return working(RemovePod, v1beta1.WorkspacePhaseStopping, v1beta1.ReasonPodLost,
			"the pod that copies its files ended and is replaced: "+podstate.Words(f.Pod.Status.Reason, f.Pod.Status.Message))
	case f.Pod.Status.Phase != corev1.PodRunning:
		return startingPlan(f)
	}
	if failure := copyFailure(f.Pod); failure != "" {
		return failed(v1beta1.ReasonFilesNotCopied, "its files cannot be copied, which is retried: "+failure)
	}
	left := CopyPatience - f.Now.Sub(f.Pod.CreationTimestamp.Time)
	if left <= 0 {
		return failed(v1beta1.ReasonFilesNotCopied, "its files are not copied within "+CopyPatience.String()+": wait, or "+
			"see the log of Pod "+f.Pod.Name)
	}
	return copying("its files are being copied in Pod " + f.Pod.Name).after(left)
}

func copying(message string) Plan {
	return working(Nothing, v1beta1.WorkspacePhasePending, v1beta1.ReasonFilesNotCopied, message)
}

// copyFailure is why the last copy of the files failed; empty if none has.
func copyFailure(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if last := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated); last != nil && last.ExitCode != 0 {
			return podstate.Words(last.Reason, strings.TrimSpace(last.Message))
		}
	}
	return ""
}
