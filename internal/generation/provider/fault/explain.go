// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"cmp"
	"fmt"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// explanation is what is wrong, and what to do about it once nothing is tried again by itself.
type explanation struct{ wrong, advice string }

// explanations are those of the reasons. {provider}, {model}, {config}, {status}, {finish}, {host},
// {silence}, {credential} and {key} stand for what they name; {status} is the HTTP status in parentheses, or nothing,
// and {finish} the finish reason of the reply.
var explanations = map[v1beta1.ErrorReason]explanation{
	v1beta1.ErrorCanceled:        {"The call of {provider} was canceled", "Send a message to continue"},
	v1beta1.ErrorProviderTimeout: {"{provider} sent nothing for {silence}", "Send a message to try again"},
	v1beta1.ErrorHistoryRejected: {
		"{provider} rejected the message history as inconsistent{status}",
		"Delete the newest reply, or start a new chat",
	},
	v1beta1.ErrorOverloaded: {
		"{provider} has no capacity at the moment{status}",
		"Wait a little, then send a message to continue",
	},
	v1beta1.ErrorUsageLimitReached: {
		"The quota or credit at {provider} is used up{status}",
		"Check billing there, then send a message to continue",
	},
	v1beta1.ErrorProviderDisabled: {
		"{provider} has disabled the account of the {credential} of ChatModelConfig {config}, or its API{status}",
		"Have its administrator enable it, or name another ChatModelConfig, then send a message to continue",
	},
	v1beta1.ErrorAuthenticationFailed: {
		"{provider} refused the {credential} of ChatModelConfig {config}{status}",
		"{key}, then send a message to continue",
	},
	v1beta1.ErrorPermissionDenied: {
		"The {credential} of ChatModelConfig {config} may not use model {model}{status}",
		"Grant it at {provider}, or name another model, then send a message to continue",
	},
	v1beta1.ErrorRateLimited: {
		"{provider} limits the rate of requests{status}",
		"Wait a little, then send a message to continue",
	},
	v1beta1.ErrorTLSFailed: {
		"TLS verification of {host} failed",
		"Check baseURL of ChatModelConfig {config}, name a private authority in its caBundleFrom, and check who is between " +
			"the cluster and it, then send a message to continue",
	},
	v1beta1.ErrorModelConfigInvalid: {
		"baseURL of ChatModelConfig {config} is no URL that can be called",
		"Correct it, then send a message to continue",
	},
	v1beta1.ErrorProviderUnavailable: {
		"{provider} cannot be reached or broke off its answer{status}",
		"Check baseURL of ChatModelConfig {config} and the network, then send a message to continue",
	},
	v1beta1.ErrorContentFiltered: {
		"A content filter of {provider} stopped the reply{status}{finish}",
		"Edit the message, or send another one",
	},
	v1beta1.ErrorContextTooLong: {
		"The conversation no longer fits the context window of model {model}{status}",
		"Start a new chat, or name a model with a larger one",
	},
	v1beta1.ErrorModelNotFound: {
		"{provider} has no model {model}, or not for the {credential} of ChatModelConfig {config}{status}",
		"Name another model, or have this one enabled, then send a message to continue",
	},
	v1beta1.ErrorRequestRejected: {
		"{provider} rejected the request{status}",
		"Check model and settings of ChatModelConfig {config}, then send a message to continue",
	},
	v1beta1.ErrorEmptyReply: {
		"{model} ended its reply without text and without a tool call{finish}",
		"Send a message to try again, or name another model",
	},
	v1beta1.ErrorReplyFailed: {
		"{provider} did not finish the reply of {model}{finish}",
		"Send a message to try again, or name another model",
	},
	v1beta1.ErrorProviderError: {"{provider} failed{status}", "Send a message to try again"},
	v1beta1.ErrorUnknown: {
		"The call of {provider} failed with an error that Parley does not know{status}",
		"Check ChatModelConfig {config}, then send a message to try again",
	},
}

// The explanations of rules that know more than their reason.
var (
	explainTruncated = explanation{"{provider} ended its answer before its end", "Send a message to try again"}
	explainNoTLS     = explanation{
		"{host} speaks no TLS that can be used",
		"Check whether baseURL of ChatModelConfig {config} should begin with http:// or name another port, then send a " +
			"message to continue",
	}
	explainUnresolved = explanation{
		"The name {host} cannot be resolved",
		"Check baseURL of ChatModelConfig {config} and the cluster's DNS, then send a message to continue",
	}
	explainRefused = explanation{
		"{host} refused the connection",
		"Check baseURL of ChatModelConfig {config} and the network, then send a message to continue",
	}
	explainTimedOut = explanation{
		"{host} did not answer in time",
		"Check baseURL of ChatModelConfig {config} and the network, then send a message to continue",
	}
	explainExceedsRate = explanation{
		"The conversation is longer than the rate of tokens that {provider} allows for model {model}{status}",
		"Start a new chat, or have the limit raised",
	}
	explainRedirect = explanation{
		"{provider} redirects calls to {host}{status}, and redirects are not followed, since the conversation and the API " +
			"key would go along",
		"If that is where the model is, name it in baseURL of ChatModelConfig {config}, then send a message to continue",
	}
	explainOversized = explanation{
		"{provider} sent more than an answer can have{status}",
		"Check baseURL of ChatModelConfig {config} and who answers there, then send a message to try again",
	}
	explainElsewhere = explanation{
		"There is no model behind baseURL of ChatModelConfig {config}{status}",
		"Check its path, which often ends with /v1, then send a message to continue",
	}
	explainProxyRefused = explanation{
		"The proxy does not let {provider} be called{status}",
		"Check proxy of ChatModelConfig {config} with its secretRef, the manager's --https-proxy and --no-proxy, and the " +
			"proxy's own rules, then send a message to continue",
	}
	explainProxyFailed = explanation{
		"The proxy could not connect to {host}{status}",
		"Check baseURL of ChatModelConfig {config} and the proxy, then send a message to continue",
	}
	explainNoProxy = explanation{
		"The proxy through which {provider} is called cannot be reached",
		"Check proxy of ChatModelConfig {config}, or the manager's --https-proxy and --no-proxy, then send a message to " +
			"continue",
	}
	explainForbiddenHost = explanation{
		"ChatModelConfig {config} leads to {host}, where models may not be called",
		"Name another baseURL, proxy or region, or have the operator's administrator change --model-hosts or " +
			"--allow-loopback, then send a message to continue",
	}
)

// maxFinishReason is how many characters of a finish reason are shown.
const maxFinishReason = 63

// maxQuoted is how many characters of the provider's own message are shown.
const maxQuoted = 300

// explain fills the rule's explanation in, and adds the provider's own words to what is wrong.
func explain(r *rule, f *findings, about Subject) explanation {
	if f.login != nil {
		return explainLogin(f.login, about)
	}
	status, host := "", "The host of "+string(about.Spec.Provider)
	if f.status != 0 {
		status = fmt.Sprintf(" (%d)", f.status)
	}
	finishReason := ""
	if f.reply != nil {
		if reason := quotable(f.reply.Reason, about); reason != "" {
			finishReason = " (finish reason " + clip.Ellipsis(printable.Line(reason), maxFinishReason) + ")"
		}
	}
	names := strings.NewReplacer(
		"{finish}", finishReason,
		"{provider}", string(about.Spec.Provider), "{model}", about.Spec.Model, "{config}", about.Config, "{status}", status,
		"{host}", cmp.Or(f.host, host), "{silence}", f.silence.String(), "{key}", putKey(about.Spec),
		"{credential}", credentialOf(about.Spec),
	)
	e := cmp.Or(r.explanation, explanations[r.reason])
	e = explanation{names.Replace(e.wrong), names.Replace(e.advice)}
	if r.reason == v1beta1.ErrorAuthenticationFailed { // A message about a wrong key contains the key.
		return e
	}
	if quote := quotable(f.message, about); quote != "" {
		e.wrong += ". It said: " + clip.Ellipsis(quote, maxQuoted)
	}
	return e
}

func putKey(spec *v1beta1.ChatModelConfigSpec) string {
	if hasIdentity(spec) {
		return "Let the identity of the service account parley-generation call models there"
	}
	if spec.APIKey == nil {
		return "Name a key in spec.apiKey"
	}
	ref := spec.APIKey.SecretKeyRef
	return fmt.Sprintf("Put a valid key into key %q of Secret %s", ref.Key, ref.Name)
}
