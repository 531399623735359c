// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// bomb is a front matter whose aliases stand for 10^10 entries.
func bomb() string {
	var b strings.Builder
	b.WriteString("---\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := '1'; i <= '9'; i++ {
		b.WriteString(strings.NewReplacer("N", string(i), "M", string(i-1)).
			Replace("aN: &aN [*aM,*aM,*aM,*aM,*aM,*aM,*aM,*aM,*aM,*aM]\n"))
	}
	return b.String() + "name: bomb\ndescription: *a9\n---\nBody.\n"
}

func TestSkillFrontMatterIsParsed(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    Document
	}{
		"as the public format has it": {"---\nname: pdf\ndescription: Fills in forms.\nlicense: Apache-2.0\n" +
			"allowed-tools: Bash(git:*) Read\nmetadata:\n  author: example\n  version: \"1.0\"\n---\n\n# PDF\n",
			Document{"pdf", "Fills in forms.", "\n# PDF\n", 10}},
		"a description of several lines": {"---\nname: pdf\ndescription: >-\n  Fills in\n  forms.\n---\nDo it.",
			Document{"pdf", "Fills in forms.", "Do it.", 7}},
		"lines that end as on Windows": {"---\r\nname: pdf\r\ndescription: \"Fills in.\"\r\n---\r\nDo it.\r\n",
			Document{"pdf", "Fills in.", "Do it.\r\n", 5}},
		"a byte order mark":                   {"\ufeff---\nname: pdf\n---\nDo it.", Document{"pdf", "", "Do it.", 4}},
		"spaces behind the fences":            {"--- \nname: pdf\n---\t\nDo it.", Document{"pdf", "", "Do it.", 4}},
		"nothing":                             {"", Document{"", "", "", 1}},
		"nothing but instructions":            {"Do it.\n---\n", Document{"", "", "Do it.\n---\n", 1}},
		"a front matter that does not end":    {"---\nname: pdf\n", Document{"", "", "---\nname: pdf\n", 1}},
		"one that is empty":                   {"---\n---\nDo it.", Document{"", "", "Do it.", 3}},
		"one that ends the file":              {"---\nname: pdf\n---", Document{"pdf", "", "", 4}},
		"a fence that is longer":              {"---\nname: pdf\n----\n---\nDo it.", Document{"pdf", "", "Do it.", 5}},
		"what is no UTF-8":                    {"---\nname: p\xffdf\n---\nDo\xfe it.", Document{"p\ufffddf", "", "Do\ufffd it.", 4}},
		"values that are no texts":            {"---\nname: 7\ndescription: [a]\n---\n", Document{"", "", "", 5}},
		"a list in place of fields":           {"---\n- name: pdf\n---\n", Document{"", "", "", 4}},
		"a colon that makes it no YAML":       {"---\nname: \"pdf\"\ndescription: Use when: a form.\n---\n", Document{"pdf", "Use when: a form.", "", 5}},
		"a name that is given twice, no YAML": {"---\nname: a\nname: b: c\n---\n", Document{"a", "", "", 5}},
		"aliases that grow without end":       {bomb(), Document{"bomb", "", "Body.\n", 15}},
		"nesting without end": {"---\nname: deep\nx: " + strings.Repeat("[", 12<<10) + "\n---\n",
			Document{"deep", "", "", 5}},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "result", c.want, Parse([]byte(c.content)))
		})
	}
}

func TestAHugeFrontMatterIsNone(t *testing.T) {
	huge := "---\nname: pdf\ndescription: " + strings.Repeat("x", maxHead) + "\n---\nDo it."
	if got := Parse([]byte(huge)); got.Name != "" || got.Body != huge {
		t.Errorf("it says %q, and its body has %d bytes", got.Name, len(got.Body))
	}
}

func FuzzEverySkillCanBeRead(f *testing.F) {
	f.Add([]byte("---\nname: pdf\n---\nDo it."))
	f.Add([]byte(bomb()))
	f.Add([]byte("---\n? [a: {b\n---\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		d := Parse(content)
		text := strings.TrimPrefix(strings.ToValidUTF8(string(content), "\ufffd"), "\ufeff")
		if !strings.HasSuffix(text, d.Body) || strings.Count(text[:len(text)-len(d.Body)], "\n")+1 < d.BodyLine-1 {
			t.Errorf("of %q the body is %q from line %d on", content, d.Body, d.BodyLine)
		}
	})
}
