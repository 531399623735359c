// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/finish"
)

// Retried returns in the words of docs/reference/errors.md whether a call that failed for the reason is tried again;
// empty if no rule gives the reason.
func Retried(reason v1beta1.ErrorReason) string {
	for _, r := range rules {
		if r.reason == reason {
			return map[retryPolicy]string{retryAlways: "yes", retryNever: "no",
				retryIfAsked: "no, unless the provider says so"}[r.retry]
		}
	}
	return ""
}

// failedReply is the finish reason of the example.
const failedReply = "error"

// Example is the text of an error for the reason, without words of the provider.
func Example(reason v1beta1.ErrorReason, status int) string {
	spec := &v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAI, Model: "gpt-5",
		APIKey: &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "openai", Key: "api-key"}}}
	f := &findings{status: status, host: "models.example", silence: spec.SilenceTimeoutOrDefault()}
	if reason == v1beta1.ErrorReplyFailed {
		f.reply = &finish.Error{Reason: failedReply}
	}
	why := explain(&rule{reason: reason}, f, Subject{Config: "default", Spec: spec})
	return (&v1beta1.GenerationError{Message: why.wrong, Advice: why.advice}).Text()
}
