// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
)

// asked waits for a chat that the plug-in creates with a prompt, and makes that a message as the operator does.
func (p *person) asked(prefix, prompt string) *v1beta1.ChatMessage {
	p.t.Helper()
	chat := p.created(prefix)
	check.Equal(p.t, "prompt", prompt, chat.Spec.Prompt)
	p.create(&v1beta1.ChatMessage{ObjectMeta: p.meta(chat.Name + "-prompt"), Spec: v1beta1.ChatMessageSpec{
		ChatRef: v1beta1.ChatReference{Name: chat.Name}, Role: v1beta1.RoleUser, Content: prompt}})
	return p.sent()
}

// call puts a reply with text and a call at the chat's head, and the result of the call behind it.
func (p *person) call(text string) {
	p.t.Helper()
	p.reply(chattest.Says(text), chattest.Calls("call_1"))
	executing := answering(p.chat)
	executing.Status.Generation.Action = v1beta1.ActionExecuteTools
	results := chattest.Answer(executing, chattest.Results("call_1"))
	p.create(results)
	p.commit(results.Name)
}

// end ends the turn of a message.
func (p *person) end(m *v1beta1.ChatMessage, result v1beta1.TurnResult, reason v1beta1.ConditionReason) {
	p.t.Helper()
	p.chat.Status.Turn.Result = result
	p.chat.Status.Conditions = ready(metav1.ConditionTrue, reason, "")
	p.updateStatus(p.chat)
	p.settle(m, ready(metav1.ConditionTrue, reason, ""))
}

func TestRunPrintsReplyBeforeResultsOfTools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, shown, note, failed string
		result                    v1beta1.TurnResult
		reason                    v1beta1.ConditionReason
	}{
		"stopped after a tool": {"I open a ticket.", "I open a ticket.\n", "", "", v1beta1.TurnStoppedAfterTool,
			v1beta1.ReasonStoppedAfterTool},
		"stopped after a tool, without a text": {"", "", "[the turn has ended without a text]", "",
			v1beta1.TurnStoppedAfterTool, v1beta1.ReasonStoppedAfterTool},
		"too many steps": {"I look.", "I look.\n", "", "ended by the chat's limits.maxSteps",
			v1beta1.TurnMaxStepsReached, v1beta1.ReasonMaxStepsReached},
		"too many steps, without a text": {"", "", "", "ended by the chat's limits.maxSteps",
			v1beta1.TurnMaxStepsReached, v1beta1.ReasonMaxStepsReached},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			run := p.run("run", "why?")
			m := p.asked("run-", "why?")
			p.begin(m)
			p.call(c.text)
			p.end(m, c.result, c.reason)
			if c.failed != "" {
				run.exits(exitFailed, "the answer is not complete: The turn was "+c.failed)
			} else {
				run.succeeds()
			}
			check.Equal(t, "shown", c.shown, run.out.String())
			check.Contains(t, run.errOut.String(), c.note)
		})
	}
}

// fullDisk is a file that takes no more bytes.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// fills runs the plug-in, and has it write to a full disk.
func (p *person) fills(args ...string) (code int, remarks string) {
	var errOut pty.Output
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: fullDisk{}, ErrOut: &errOut}
	code = Run(p.t.Context(), streams, append([]string{"--kubeconfig", p.files["token"]}, args...))
	return code, errOut.String()
}

func TestRunKeepsChatOfUnprintedAnswer(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	var running sync.WaitGroup
	running.Go(func() {
		code, remarks := p.fills("run", "--rm", "why?")
		check.Equal(t, "exit code", exitFailed, code)
		check.Contains(t, remarks, " is kept, because its answer was not printed]\n", "no space left on device")
	})
	m := p.asked("run-", "why?")
	p.begin(m)
	p.answer(m, "because")
	running.Wait()
	p.get(p.chat)
}

func TestUnprintedOutputFails(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "why?")
	for _, args := range []string{"ls", "ls -o json", "show triage", "show triage -o yaml", "export triage", "run --help",
		"suspend triage --wait=false", "suspend triage --wait=false -o name", "suspend triage --wait=false -o yaml"} {
		code, remarks := p.fills(strings.Fields(args)...)
		check.Equal(t, args, exitFailed, code)
		check.Contains(t, remarks, "printing: no space left on device\n")
	}
}

func TestRunReportsUnmatchedSchema(t *testing.T) {
	output := &v1beta1.OutputFormat{}
	for name, c := range map[string]struct {
		output *v1beta1.MessageOutput
		asks   bool
		want   string
	}{
		"no schema":           {nil, false, ""},
		"JSON":                {&v1beta1.MessageOutput{}, true, ""},
		"JSON for a class":    {&v1beta1.MessageOutput{}, false, ""},
		"JSON of another one": {&v1beta1.MessageOutput{Problem: "a is missing"}, true, "match the schema: a is missing"},
		"a call of a tool":    {nil, true, "without the JSON"},
	} {
		chat, reply := chattest.Chat("triage"), chattest.Generated("reply", v1beta1.RoleAssistant)
		if c.asks {
			chat.Spec.Output = output
		}
		reply.Spec.Generation.Output = c.output
		if got := incompleteness(chat, reply); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
