// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/capacity"
)

// ChatQuota writes the conditions of a ChatQuota that is in force. own is what all ChatQuotas of the namespace say
// together, limits what counts for the namespace.
func ChatQuota(quota *v1beta1.ChatQuota, all []v1beta1.ChatQuota, own, limits capacity.Limits, now time.Time) {
	counts := "Limits in force: " + generating(limits)
	stored, files := capacity.StoredFiles(all)
	if stored != nil {
		counts += ", and " + stored.String() + " of stored files"
	}
	summary := Done(v1beta1.ReasonEnforced, counts)
	if own.Chats.Quota != quota.Name && own.SubChats.Quota != quota.Name && files != quota.Name {
		summary = Done(v1beta1.ReasonOverridden, counts+". ChatQuota "+decisive(quota, own, files)+
			" decides, since it allows as many or fewer")
	}
	summary.apply(&quota.Status.Conditions, quota.Generation, now)
	quota.Status.ObservedGeneration = quota.Generation
}

// decisive is the quota that decides in place of this one. files is that about stored files.
func decisive(quota *v1beta1.ChatQuota, own capacity.Limits, files string) string {
	switch {
	case quota.Spec.Generating.Chats != nil:
		return own.Chats.Quota
	case quota.Spec.Generating.SubChats != nil:
		return own.SubChats.Quota
	}
	return files
}

// ClusterChatQuota writes the conditions of the ClusterChatQuota, with the limits that are in force.
func ClusterChatQuota(quota *v1beta1.ClusterChatQuota, limits capacity.ClusterLimits, now time.Time) {
	all, each := limits.All, limits.Namespace
	Done(v1beta1.ReasonEnforced, "Limits in force: "+generating(all)+" in all namespaces together, "+
		generating(each)+" in a namespace without a ChatQuota for them").apply(&quota.Status.Conditions, quota.Generation,
		now)
	quota.Status.ObservedGeneration = quota.Generation
}

// generating says how many may be at work.
func generating(limits capacity.Limits) string {
	return fmt.Sprintf("%s and %s generating at once", counted(limits.Chats.Max, "chat"),
		counted(limits.SubChats.Max, "sub-chat"))
}

func counted(n int32, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
