// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
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
// says that it is done, or why it failed: it keeps the source's claim, and stays on the node that it was made for.
func superviseCopy(f *Facts) Plan {
	switch {
	case !f.Workspace.IsCopying():
		return stopping(RemovePod, "the pod that copied its files is being removed")
	case f.Copied():
		return copying("its files are copied")
	case f.Pod.Annotations[AnnotationGeneration] != strconv.FormatInt(f.Workspace.Generation, 10):
		return stopping(RemovePod, "the pod that copies its files is being replaced, because spec.source has changed")
	}
	if failure := f.copyFailure(); failure != "" {
		return retryCopy(f, failed(v1beta1.ReasonFilesNotCopied, "its files cannot be copied, which is retried: "+failure))
	}
	if f.Pod.Status.Phase != corev1.PodRunning {
		return startingPlan(f)
	}
	left := CopyPatience - f.Now.Sub(f.Pod.CreationTimestamp.Time)
	if left <= 0 {
		return failed(v1beta1.ReasonFilesNotCopied, "its files are not copied within "+CopyPatience.String()+": wait, or "+
			"see the log of Pod "+f.Pod.Name)
	}
	return copying("its files are being copied in Pod " + f.Pod.Name).after(left)
}

// retryCopy adds to a plan that the pod is removed, if the status already says what the plan does.
func retryCopy(f *Facts, p Plan) Plan {
	reported, next := f.failedCopy(), f.Workspace.DeepCopy()
	conditions.Workspace(next, p.Summary, f.Now) // It shortens messages.
	if ready := meta.FindStatusCondition(next.Status.Conditions, v1beta1.ConditionReady); reported != nil &&
		reported.Message == ready.Message {
		p.Act = RemovePod
	}
	return p
}

func copying(message string) Plan {
	return working(Nothing, v1beta1.WorkspacePhasePending, v1beta1.ReasonFilesNotCopied, message)
}

// copyFailure is why the pod does not copy the files; empty if it does, or may still start.
func (f *Facts) copyFailure() string {
	status := &f.Pod.Status
	switch {
	case status.Phase == corev1.PodPending:
		if p := startingPlan(f); p.Phase == v1beta1.WorkspacePhaseFailed {
			return p.Summary.Message
		}
	case status.Phase == corev1.PodFailed && status.Reason != "":
		return podstate.Words(status.Reason, status.Message)
	case status.Phase == corev1.PodFailed:
		for _, c := range status.ContainerStatuses {
			if t := c.State.Terminated; t != nil {
				return podstate.Words(t.Reason, strings.TrimSpace(t.Message))
			}
		}
		return "Pod " + f.Pod.Name + " failed"
	}
	return ""
}

// failedCopy is the condition that says that a copy from the source of now failed; nil: there is none.
func (f *Facts) failedCopy() *metav1.Condition {
	ready := meta.FindStatusCondition(f.Workspace.Status.Conditions, v1beta1.ConditionReady)
	if !f.Workspace.IsCopying() || ready == nil || ready.Status != metav1.ConditionFalse ||
		v1beta1.ReasonOf(ready) != v1beta1.ReasonFilesNotCopied || ready.ObservedGeneration != f.Workspace.Generation {
		return nil
	}
	return ready
}

// copyBackoff is how much longer a failed copy is not retried: as long as it has been tried before, within limits.
func (f *Facts) copyBackoff() time.Duration {
	failure := f.failedCopy()
	if failure == nil {
		return 0
	}
	failedAt := failure.LastTransitionTime.Time
	tried := failedAt.Sub(f.Workspace.CreationTimestamp.Time)
	return max(retry, min(tried, StartPatience)) - f.Now.Sub(failedAt)
}
