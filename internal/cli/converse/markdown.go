// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"bytes"
	"regexp"
	"strings"

	"charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"
	xansi "github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	parse "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
)

// ampersand stands for & while Markdown is rendered. So no character reference, such as &#27;, becomes what was escaped
// before. Escaped text has no character of private use.
const ampersand = "\ue000"

// ampersands restores the ampersands; in a relative URL they are encoded.
var ampersands = strings.NewReplacer(ampersand, "&", "%EE%80%80", "&")

// hyperlink matches what makes a link of a text in terminals that know it. The address stands next to the text instead.
var hyperlink = regexp.MustCompile(`\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)`)

// maxMarkdown is the most bytes of a text that are rendered as Markdown, and maxDepth how deep its nodes are nested.
// The time grows with the cube of the depth, and keys wait for it. Other texts are shown as they are.
const maxMarkdown, maxDepth = 16 << 10, 20

// prose renders Markdown of others for a terminal of that width.
func prose(text string, width int) []string {
	source := []byte(strings.ReplaceAll(escape(text), "&", ampersand))
	if len(source) > maxMarkdown {
		return wrap(escape(text), width)
	}
	md := newMarkdown(width)
	parsed := md.Parser().Parse(parse.NewReader(source))
	var b bytes.Buffer
	if isDeep(parsed) || md.Renderer().Render(&b, source, parsed) != nil {
		return wrap(escape(text), width)
	}
	shown := ampersands.Replace(hyperlink.ReplaceAllString(b.String(), ""))
	lines := strings.Split(lipgloss.Wrap(strings.Trim(shown, "\n"), width, ""), "\n")
	for len(lines) > 1 && strings.TrimSpace(xansi.Strip(lines[len(lines)-1])) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// isDeep reports whether nodes are nested more than maxDepth deep.
func isDeep(parsed ast.Node) bool {
	depth, deep := 0, false
	_ = ast.Walk(parsed, func(_ ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		depth++
		deep = deep || depth > maxDepth
		return ast.WalkContinue, nil
	})
	return deep
}

// escape escapes text of others, and makes the width of each character known.
func escape(text string) string {
	return strings.ReplaceAll(terminal.Unmarked(printable.Escape(text)), "\t", "    ")
}

// newMarkdown returns a renderer. It knows no HTML and no definitions of links, which are not shown.
func newMarkdown(width int) goldmark.Markdown {
	blocks := []util.PrioritizedValue{
		util.Prioritized(parser.NewThematicBreakParser(), 200), util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400), util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600), util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800), util.Prioritized(parser.NewParagraphParser(), 1000),
	}
	inlines := []util.PrioritizedValue{
		util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewEmphasisParser(), 500),
	}
	options := ansi.Options{WordWrap: width, InlineTableLinks: true, PreserveNewLines: true, Styles: markdownStyles()}
	md := goldmark.New(
		goldmark.WithParser(parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inlines...))),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))
	md.SetRenderer(renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(ansi.NewRenderer(options), 1000)))) // The extensions bring those of HTML.
	return md
}

// markdownStyles are those of Markdown, in the colours of the terminal.
func markdownStyles() ansi.StyleConfig {
	yes, code, link := true, "3", "6"
	s := styles.ASCIIStyleConfig
	s.Document = ansi.StyleBlock{}
	s.Heading.Bold = &yes
	s.Emph, s.Strong = ansi.StylePrimitive{Italic: &yes}, ansi.StylePrimitive{Bold: &yes}
	s.Strikethrough = ansi.StylePrimitive{CrossedOut: &yes}
	s.Link = ansi.StylePrimitive{Color: &link, Format: "({{.text}})"}
	s.Image, s.ImageText = s.Link, ansi.StylePrimitive{}
	s.Code.StylePrimitive = ansi.StylePrimitive{Color: &code}
	s.CodeBlock.Color = &code
	return s
}
