// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/finish"
	state "parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
)

func dialect(p v1beta1.ModelProvider, model string) prompt.Dialect {
	return provider.DialectOf(&v1beta1.ChatModelConfigSpec{Provider: p, Model: model})
}

func noted(text string) v1beta1.ChatMessage {
	m := user(text)
	m.Spec.Visibility = v1beta1.VisibleToUsers
	return m
}

func TestThePromptObeysWhatProvidersDemand(t *testing.T) {
	failedResult := result("a", "broken")
	failedResult.ToolResult.IsError = true
	long := strings.Repeat("x", 70)
	type history = []v1beta1.ChatMessage
	for name, c := range map[string]struct {
		history history
		want    string
	}{
		"messages in order": {history{user("one"), assistant(text("two")), user("three")},
			"user one | assistant two | user three"},
		"a note": {history{user("one"), noted("two"), assistant(text("three")), user("four")},
			"user one | assistant three | user four"},
		"a user message of parts": {history{said(v1beta1.RoleUser, text("one"), text(""), text("two"))}, "user one two"},
		"calls and results": {
			history{user("q"), assistant(text("see"), call("a", "{}"), call("b", "{}")),
				tool(result("a", "1"), result("b", "2"))},
			"user q | assistant see a=t{} b=t{} | tool a:1 b:2",
		},
		"results of several messages come together, in the order of the calls": {
			history{user("q"), assistant(call("a", "{}"), call("b", "{}")), tool(result("b", "2")), tool(result("a", "1"))},
			"user q | assistant a=t{} b=t{} | tool a:1 b:2",
		},
		"a result that is an error": {history{user("q"), assistant(call("a", "{}")), tool(failedResult)},
			"user q | assistant a=t{} | tool a!broken"},
		"a result without text": {history{user("q"), assistant(call("a", "{}")), tool(result("a", " \n"))},
			"user q | assistant a=t{} | tool a:(no output)"},
		"a call without arguments": {history{user("q"), assistant(call("a", "")), tool(result("a", "1"))},
			"user q | assistant a=t{} | tool a:1"},
		"arguments that are no object": {history{user("q"),
			assistant(call("a", `{"x":`), call("b", "null"), call("c", "[1]"))},
			"user q | assistant a=t{} b=t{} c=t{} | tool a!This b!This c!This"},
		"a NUL in arguments": {history{user("q"),
			assistant(call("a", `{"n":12345678901234567890,"x":["<\u0000>"]}`)), tool(result("a", "1"))},
			`user q | assistant a=t{"n":12345678901234567890,"x":["<` + "\uFFFD" + `>"]} | tool a:1`},
		"a name that no provider takes": {history{user("q"),
			assistant(callOf("a", "mcp:x.y", "{}"), callOf("b", long, "{}")), tool(result("a", "1"), result("b", "2"))},
			"user q | assistant a=mcp_x_y{} b=" + long[:64] + "{} | tool a:1 b:2"},
		"a call at the end is answered": {history{user("q"), assistant(call("a", "{}"))},
			"user q | assistant a=t{} | tool a!This"},
		"calls are answered before users": {history{user("q"), assistant(call("b", "{}"), call("a", "{}")), user("go on")},
			"user q | assistant b=t{} a=t{} | tool b!This a!This | user go on"},
		"the one call without a result is answered": {
			history{user("q"), assistant(call("a", "{}"), call("b", "{}")), tool(result("a", "1")), assistant(text("x")),
				user("r")},
			"user q | assistant a=t{} b=t{} | tool a:1 b!This | assistant x | user r",
		},
		"a second result of a call is left out": {history{user("q"), assistant(call("a", "{}")),
			tool(result("a", "1"), result("a", "again"))}, "user q | assistant a=t{} | tool a:1"},
		"a result that comes after a user goes to its call": {
			history{user("q"), assistant(call("a", "{}")), user("and?"), tool(result("a", "late"))},
			"user q | assistant a=t{} | tool a:late | user and?",
		},
		"a result without a call gets one": {
			history{user("q"), tool(result("z", "1")), assistant(call("a", "{}")), tool(result("a", "2"), result("y", "3"))},
			"user q | assistant z=t{} | tool z:1 | assistant a=t{} | tool a:2 | assistant y=t{} | tool y:3",
		},
		"parts that say nothing are left out": {history{user("q"),
			assistant(reasoning(" "), text("\n"), reasoning("hm"), text("x")), user("r")}, "user q | assistant (hm) x | user r"},
		"messages that say nothing are left out": {history{user("q"), assistant(text("")), user(" "), user("r")},
			"user q | user r"},
		"reasoning alone is left out, and at the end": {
			history{user("q"), assistant(reasoning("hm")), user("r"), assistant(text("x"), reasoning("hm")), user("s")},
			"user q | user r | assistant x | user s",
		},
		"ids in characters that every provider takes": {history{user("q"), assistant(call("f.t:1", "{}")),
			tool(result("f.t:1", "1"))}, "user q | assistant f_t_1=t{} | tool f_t_1:1"},
		"ids that become the same": {history{user("q"), assistant(call("a.1", "{}"), call("a:1", "{}")),
			tool(result("a:1", "2"), result("a.1", "1"))}, "user q | assistant a_1=t{} a_1-2=t{} | tool a_1:1 a_1-2:2"},
		"ids that are too long": {history{user("q"), assistant(call(long+"1", "{}"), call(long+"2", "{}")),
			tool(result(long+"2", "2"))}, "user q | assistant " + long[:64] + "=t{} " + long[:62] + "-2=t{} | tool " +
			long[:64] + "!This " + long[:62] + "-2:2"},
		"an id that is used again in a later reply": {
			history{user("q"), assistant(call("a", "{}")), tool(result("a", "1")), assistant(call("a", "{}")),
				tool(result("a", "2"))},
			"user q | assistant a=t{} | tool a:1 | assistant a-2=t{} | tool a-2:2",
		},
		"an id that is used again before it was answered": {
			history{user("q"), assistant(call("a", "{}")), assistant(call("a", "{}")), tool(result("a", "2"))},
			"user q | assistant a=t{} | tool a!This | assistant a-2=t{} | tool a-2:2",
		},
		"an id that is used twice in one reply": {history{user("q"), assistant(call("a", "{}"), call("a", "{}")),
			tool(result("a", "1"), result("a", "2"))}, "user q | assistant a=t{} a-2=t{} | tool a:1 a-2:2"},
		"a provider's own call or result alone": {history{user("q"),
			assistant(byProvider(call("s", "{}")), byProvider(result("r", "1")), text("x")), tool(byProvider(result("s", "1"))),
			user("r")}, "user q | assistant x | user r"},
		"NUL and characters that are none": {history{user("a\x00b\xff"), assistant(text("\x00")), tool(result("a", "\xfe"))},
			"user a\uFFFDb\uFFFD | assistant \uFFFD | assistant a=t{} | tool a:\uFFFD"},
		"a reply first": {history{assistant(text("x")), user("q")},
			"user (The beginning of this conversation is not shown.) | assistant x | user q"},
		"a reply last":   {history{user("q"), assistant(text("x"))}, "user q | assistant x | user Go on."},
		"nothing at all": {history{user(" ")}, "user Go on."},
	} {
		t.Run(name, func(t *testing.T) { told{prompt.Dialect{}, c.history, c.want}.check(t) })
	}
}

// told is a history, and what a model of the dialect is told of it.
type told struct {
	dialect prompt.Dialect
	history []v1beta1.ChatMessage
	want    string
}

func (c told) check(t *testing.T) {
	t.Helper()
	check.Equal(t, "the prompt", c.want, outline(prompt.Build(prompt.Input{History: c.history, Dialect: c.dialect})))
}

func TestDialectsDiffer(t *testing.T) {
	long := strings.Repeat("x", 70)
	texts := []v1beta1.ChatMessage{user("q"), user("r"), assistant(text("1"), call("a", "{}"), text("2")),
		tool(result("a", "3")), user("s"), user("t")}
	for name, c := range map[string]told{
		"OpenAI keeps the last of several texts alone": {dialect(v1beta1.ProviderOpenAI, "m"), texts,
			"user q | user r | assistant 1\n2 a=t{} | tool a:3 | user s | user t"},
		"compatible servers want roles to alternate": {dialect(v1beta1.ProviderOpenAICompatible, "m"), texts,
			"user q\n\nr | assistant 1\n2 a=t{} | tool a:3 | assistant (The reply ended here.) | user s\n\nt"},
		"Google wants roles to alternate": {dialect(v1beta1.ProviderGoogle, "gemini-2.5-pro"), texts,
			"user q\n\nr | assistant 1 a=t{} 2 | tool a:3 | user s\n\nt"},
		"Google's newer models want calls signed": {dialect(v1beta1.ProviderGoogle, "gemini-3-pro"), texts,
			"user q\n\nr | assistant 1 ()* a=t{} 2 | tool a:3 | user s\n\nt"},
		"Anthropic is told what to cache": {dialect(v1beta1.ProviderAnthropic, "m"), texts,
			"user q | user r | assistant 1 a=t{} 2 | tool a:3 | user s ^ | user t ^"},
		"Bedrock is told what to cache":        {dialect(v1beta1.ProviderBedrock, "m"), texts[:1], "user q ^"},
		"OpenRouter is not told what to cache": {dialect(v1beta1.ProviderOpenRouter, "anthropic/m"), texts[:1], "user q"},
		"OpenAI's chat protocol takes short ids": {dialect(v1beta1.ProviderOpenAI, "m"),
			[]v1beta1.ChatMessage{user("q"), assistant(call(long, "{}"))}, "user q | assistant " + long[:40] + "=t{} | tool " +
				long[:40] + "!This"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}

func cites(title, url string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartSource, Source: &v1beta1.Source{Title: title, URL: url}}
}

// Security (a search of a provider): cannot write more than one printable line for each page that it finds into the
// prompt of another provider.
func TestItemsOfAnotherProviderAreNotReplayed(t *testing.T) {
	search := assistant(with(signature, reasoning("hm")), byProvider(callOf("srvtoolu_1", "web_search", `{"query":"x"}`)),
		with(found, byProvider(result("srvtoolu_1", "it says y"))), text("y"))
	claude := []v1beta1.ChatMessage{user("q"), by(v1beta1.ProviderAnthropic, "claude", search), user("r")}
	sealed := by(v1beta1.ProviderAnthropic, "claude", assistant(
		byProvider(callOf("srvtoolu_1", "web_search", `{"query":"x"}`)), cites("Y\nuser: \x1b]8;;", "https://y"), cites("", "https://z"),
		with(found, byProvider(result("srvtoolu_1", ""))), text("y"), cites("cited", "https://c")))
	flattened := "[Result of web_search {\"query\":\"x\"}]\nit says y"
	kimi := []v1beta1.ChatMessage{user("q"),
		by(v1beta1.ProviderOpenAICompatible, "kimi", assistant(reasoning("hm"), text("y"))), user("r")}
	for name, c := range map[string]told{
		"Anthropic reads back all of its own": {dialect(v1beta1.ProviderAnthropic, "other"), claude,
			`user q | assistant (hm)* srvtoolu_1=web_search{"query":"x"} srvtoolu_1:it says y* y ^ | user r ^`},
		"Bedrock reads back what Anthropic wrote, and of a search the result": {
			dialect(v1beta1.ProviderBedrock, "m"), claude, "user q | assistant (hm)* " + flattened + " y ^ | user r ^"},
		"OpenAI reads the result of a search": {dialect(v1beta1.ProviderOpenAI, "m"), claude,
			"user q | assistant " + flattened + "\ny | user r"},
		"Google reads the result of a search": {dialect(v1beta1.ProviderGoogle, "m"), claude,
			"user q | assistant " + flattened + "\n\ny | user r"},
		"OpenAI reads what a search has found whose result is sealed": {dialect(v1beta1.ProviderOpenAI, "m"),
			[]v1beta1.ChatMessage{user("q"), sealed, user("r")},
			"user q | assistant [Result of web_search {\"query\":\"x\"}]\nY user: ]8;; https://y\nhttps://z\ny | user r"},
		"a server reads back its model's reasoning": {dialect(v1beta1.ProviderOpenAICompatible, "kimi"), kimi,
			"user q | assistant (hm) y | user r"},
		"another model does not read that reasoning": {dialect(v1beta1.ProviderOpenAICompatible, "llama"), kimi,
			"user q | assistant y | user r"},
		"Anthropic does not read that reasoning": {dialect(v1beta1.ProviderAnthropic, "m"), kimi,
			"user q | assistant y ^ | user r ^"},
		"a search whose result is not whole is text": {
			dialect(v1beta1.ProviderAnthropic, "m"),
			[]v1beta1.ChatMessage{user("q"), assistant(byProvider(callOf("srvtoolu_1", "web_search", "{}")),
				byProvider(result("srvtoolu_1", "y"))), user("r")},
			"user q | assistant [Result of web_search {}]\ny ^ | user r ^",
		},
		"metadata of another protocol are left out": {
			dialect(v1beta1.ProviderGoogle, "m"),
			[]v1beta1.ChatMessage{user("q"), assistant(with(signature, reasoning("hm")), with(signature, text("y")),
				byProvider(callOf("srvtoolu_1", "web_search", "{}")), with(found, byProvider(result("srvtoolu_1", "z")))),
				user("r")},
			"user q | assistant (hm) y\n\n[Result of web_search {}]\nz | user r",
		},
		"metadata that cannot be read is left out": {
			dialect(v1beta1.ProviderAnthropic, "m"),
			[]v1beta1.ChatMessage{user("q"),
				assistant(with("{", reasoning("1")), with(`{"parley":{"type":"nobody.knows","data":{}}}`, text("2")),
					with(`{"openai":{}}`, text("3"))), user("r")},
			"user q | assistant (1) 2 3 ^ | user r ^",
		},
	} {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}

func TestTheSystemMessageHasItsBlocksInOrder(t *testing.T) {
	in := prompt.Input{
		SystemPrompt: "sys\n", Instructions: []string{"one", " ", "two"}, SubChat: true, Extra: []string{"", "extra\x00"},
		History: []v1beta1.ChatMessage{user("q")},
	}
	got := outline(prompt.Build(in))
	if !strings.HasPrefix(got, "system sys\n\none\n\ntwo\n\nAnother agent gave you this task") ||
		!strings.HasSuffix(got, "could not do.\n\nextra\uFFFD | user q") {
		t.Errorf("got %s", got)
	}
	if got := outline(prompt.Build(prompt.Input{SystemPrompt: " ", Extra: []string{"x"}, History: in.History,
		Dialect: dialect(v1beta1.ProviderAnthropic, "m")})); got != "system x ^ | user q ^" {
		t.Errorf("got %s", got)
	}
}

func TestLongInstructionsAreCutVisiblyAndBetweenCharacters(t *testing.T) {
	in := prompt.Input{Instructions: []string{strings.Repeat("é", 40000)}, History: []v1beta1.ChatMessage{user("q")}}
	got := prompt.Build(in)[0].Content[0].(fantasy.TextPart).Text
	kept, marker, _ := strings.Cut(got, "\n\n")
	check.Equal(t, "bytes", 64<<10, len(kept))
	check.Lacks(t, got, "\uFFFD")
	check.Contains(t, marker, "cut off")
}

func TestTheSignatureOfReasoningComesBack(t *testing.T) {
	a := collect.NewAccumulator(v1beta1.ProviderAnthropic, 1, nil)
	a.Add(&fantasy.StreamPart{Type: fantasy.StreamPartTypeReasoningDelta, ID: "0", Delta: "hm"})
	a.Add(&fantasy.StreamPart{Type: fantasy.StreamPartTypeReasoningEnd, ID: "0",
		ProviderMetadata: fantasy.ProviderMetadata{state.Key: &state.State{Protocol: finish.Messages, Signature: "signed"}}})
	a.Add(&fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: "1", Delta: "x"})
	got := prompt.Build(prompt.Input{History: []v1beta1.ChatMessage{user("q"), assistant(a.Finish().Parts...)},
		Dialect: dialect(v1beta1.ProviderAnthropic, "m")})
	check.Equal(t, "the signature", "signed", state.StateOf(got[1].Content[0]).Signature)
}

func TestTextsOfAPromptAreWhatProvidersQuote(t *testing.T) {
	messages := prompt.Build(prompt.Input{
		SystemPrompt: "sys", History: []v1beta1.ChatMessage{user("q"), assistant(reasoning("hm"), call("a", `{"x":1}`)),
			tool(result("a", "1")), assistant(call("b", "{}"))},
	})
	if got := strings.Join(prompt.Texts(messages), "|"); !strings.HasPrefix(got,
		`sys|q|hm|{"x":1}|1|{}|This call has no result`) {
		t.Errorf("got %s", got)
	}
}

func TestProviderGetsItsIDsBackUnchanged(t *testing.T) {
	kimi := func(id, given string) v1beta1.ChatMessage {
		part := call(id, "{}")
		part.ToolCall.ProviderID = given
		return by(v1beta1.ProviderOpenAICompatible, "kimi-k2", assistant(part))
	}
	history := []v1beta1.ChatMessage{
		user("q"), kimi("functions_t_0", "functions.t:0"), tool(result("functions_t_0", "1")),
		kimi("functions_t_0-9", "functions.t:0"), tool(result("functions_t_0-9", "2")),
		kimi("call_a_b", "call a.b"), tool(result("call_a_b", "3")), kimi("x_1", "x.1"), tool(result("x_1", "4")),
	}
	for name, c := range map[string]struct {
		dialect prompt.Dialect
		want    []string
	}{
		"itself": {dialect(v1beta1.ProviderOpenAICompatible, "kimi-k2"),
			[]string{"functions.t:0", "functions.t:0", "call_a_b", "x.1"}},
		"Kimi elsewhere": {dialect(v1beta1.ProviderOpenRouter, "moonshotai/kimi-k2"),
			[]string{"functions.t:0", "functions_t_0-9", "call_a_b", "x_1"}},
		"Anthropic": {dialect(v1beta1.ProviderAnthropic, "claude"),
			[]string{"functions_t_0", "functions_t_0-9", "call_a_b", "x_1"}},
		"a gateway": {dialect(v1beta1.ProviderOpenRouter, "anthropic/claude"),
			[]string{"functions_t_0", "functions_t_0-9", "call_a_b", "x_1"}},
		"another protocol": {dialect(v1beta1.ProviderGoogle, "gemini-3"),
			[]string{"functions_t_0", "functions_t_0-9", "call_a_b", "x_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls, results []string
			for _, m := range prompt.Build(prompt.Input{History: history, Dialect: c.dialect}) {
				for _, part := range m.Content {
					switch part := part.(type) {
					case fantasy.ToolCallPart:
						calls = append(calls, part.ToolCallID)
					case fantasy.ToolResultPart:
						results = append(results, part.ToolCallID)
					}
				}
			}
			check.Equal(t, "calls and results", [][]string{c.want, c.want}, [][]string{calls, results})
		})
	}
}

func TestReasonOfGivenUpCallsStaysTheSame(t *testing.T) {
	history := []v1beta1.ChatMessage{user("q"), by("", "", assistant(call("1", "{}"), call("2", "{}"))),
		by("", "", tool(result("1", "42")))}
	seen := map[string]bool{}
	for _, why := range []v1beta1.CallsCanceledReason{
		v1beta1.CallsCanceled, v1beta1.CallsInterrupted, v1beta1.CallsTimedOut,
		v1beta1.CallsFailed, v1beta1.CallsEdited,
	} {
		read := func(in prompt.Input) string { return strings.Join(prompt.Texts(prompt.Build(in)), "|") }
		now := read(prompt.Input{History: history, CallsCanceledReason: why})
		_, said, found := strings.Cut(now, "This call has no result: ")
		check.Equal(t, why, []any{true, false}, []any{found && said != "", seen[said]})
		seen[said] = true
		reply, next := by("", "", assistant(text("Well."))), user("and?")
		reply.Spec.Generation.CallsCanceledReasonBefore, next.Status.CallsCanceledReasonBefore = why, why
		for _, follows := range []v1beta1.ChatMessage{reply, next} {
			// What was given up since is about other calls.
			later := read(prompt.Input{History: append(slices.Clip(history), follows),
				CallsCanceledReason: v1beta1.CallsEdited})
			if !strings.HasPrefix(later, now) {
				t.Errorf("%s: the model read %q, and later %q", why, now, later)
			}
		}
	}
}

func TestResultsAreCutToWhatTheModelReads(t *testing.T) {
	const most = 16 << 10
	long := strings.Repeat("ä€😀", 100_000)
	history := []v1beta1.ChatMessage{user("Read it."), by("", "", assistant(call("1", "{}"))), tool(result("1", long))}
	for name, history := range map[string][]v1beta1.ChatMessage{
		"of a client": history, "of Parley": append(history[:2:2], by("", "", history[2])), "without a call": history[2:],
	} {
		t.Run(name, func(t *testing.T) {
			built := prompt.Build(prompt.Input{History: history, ResultBytes: most})
			var said []string
			for _, m := range built {
				for _, part := range m.Content {
					if result, ok := part.(fantasy.ToolResultPart); ok {
						said = append(said, outputOf(result))
					}
				}
			}
			check.Equal(t, "results, the first is too long", []any{1, false}, []any{len(said), len(said[0]) > most})
			check.Contains(t, said[0], "bytes left out")
			check.Lacks(t, said[0], "\uFFFD")
			check.Equal(t, "the history", long, history[len(history)-1].Spec.Parts[0].ToolResult.Output)
			longer := prompt.Build(prompt.Input{History: append(slices.Clip(history), user("And?")), ResultBytes: most})
			check.Equal(t, "the beginning of a longer prompt", outline(built), outline(longer[:len(built)]))
		})
	}
}
