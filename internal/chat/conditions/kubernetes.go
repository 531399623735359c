// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// MarkKubernetes records why the model could not work in the cluster at the newest reply; nil: it could, or was not to.
// It says nothing of the chat itself, which continues.
func MarkKubernetes(st *v1beta1.ChatStatus, why *v1beta1.KubernetesUnavailable, now time.Time) {
	if why == nil {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionKubernetesUnavailable)
		return
	}
	set(&st.Conditions, metav1.Condition{
		Type: v1beta1.ConditionKubernetesUnavailable, Status: metav1.ConditionTrue, Reason: string(why.Reason),
		Message: "At the newest reply the model could not work in the cluster: " + why.Message,
	}, st.ObservedGeneration, now)
}
