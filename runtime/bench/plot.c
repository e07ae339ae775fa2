// A line an arm over the sizes, a bar from quartile to quartile at each point. Text and axes are drawn in a grey that
// both light and dark pages show; the background stays the page's.
#include "bench/report.h"

#include <string.h>

enum { WIDTH = 860, HEIGHT = 440, LEFT = 70, RIGHT = 30, TOP = 60, BOTTOM = 80, COLOURS = 8 };

static const char *const colours[COLOURS] = {"#0a84d6", "#e8590c", "#2f9e44", "#ae3ec9",
                                             "#c99700", "#0ca678", "#e64980", "#7048e8"};

// The first of 1, 2, 5, 10, … that makes at most eight steps up to `most`.
static double step_for(double most) {
  double step = 1e-6;
  const double factors[] = {2, 2.5, 2};
  for (int i = 0; step * 8 < most; i++) step *= factors[i % 3];
  return step;
}

static double x_of(int row, int count) {
  return LEFT + (WIDTH - LEFT - RIGHT) * (row + 0.5) / count;
}

static double y_of(double tflops, double most) {
  return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (most > 0 ? tflops / most : 0);
}

static void escaped(FILE *file, const char *text) {
  for (; *text; text++) {
    if (*text == '<')
      fputs("&lt;", file);
    else if (*text == '&')
      fputs("&amp;", file);
    else if ((unsigned char)*text >= 0x20)
      fputc(*text, file);
  }
}

static double highest(const Row *rows, int count) {
  double most = 0;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < rows[i].narms; k++)
      if (rows[i].arms[k].random.flops / 1e12 > most) most = rows[i].arms[k].random.flops / 1e12;
  return most;
}

static const ArmResult *find_arm(const Row *row, const char *name) {
  for (int i = 0; i < row->narms; i++)
    if (strcmp(row->arms[i].name, name) == 0) return &row->arms[i];
  return NULL;
}

static void axes(FILE *file, const Row *rows, int count, double most, double step) {
  for (int i = 0; i * step <= most * 1.0001; i++) {
    double y = y_of(i * step, most);
    fprintf(file,
            "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#888\" stroke-opacity=\"%s\"/>\n",
            LEFT, y, WIDTH - RIGHT, y, i ? "0.3" : "1");
    fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4, i * step);
  }
  for (int i = 0; i < count; i++) {
    double x = x_of(i, count);
    bool cube = rows[i].sizes.m == rows[i].sizes.n && rows[i].sizes.n == rows[i].sizes.k;
    fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%lld%s</text>\n", x, HEIGHT - BOTTOM + 20,
            (long long)rows[i].sizes.m, cube ? "³" : "");
    if (cube) continue;
    fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">×%lld</text>\n", x, HEIGHT - BOTTOM + 36,
            (long long)rows[i].sizes.n);
    fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">×%lld</text>\n", x, HEIGHT - BOTTOM + 52,
            (long long)rows[i].sizes.k);
  }
  fprintf(file,
          "<text x=\"20\" y=\"%d\" transform=\"rotate(-90 20 %d)\" text-anchor=\"middle\">TFLOP/s</text>\n",
          (HEIGHT + TOP - BOTTOM) / 2, (HEIGHT + TOP - BOTTOM) / 2);
}

static void point(FILE *file, const ArmResult *arm, double x, double most, double flops_of_size,
                  const char *colour) {
  const Spread *seconds = &arm->random.seconds;
  double y = y_of(arm->random.flops / 1e12, most);
  fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x, y, colour);
  if (seconds->low <= 0) return;
  fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"2\"/>\n",
          x, y_of(flops_of_size / seconds->high / 1e12, most), x,
          y_of(flops_of_size / seconds->low / 1e12, most), colour);
}

static void line(FILE *file, const Row *rows, int count, int index, double most) {
  const char *name = rows[0].arms[index].name, *colour = colours[index % COLOURS];
  bool peer = rows[0].arms[index].is_peer;
  fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", colour,
          peer ? " stroke-dasharray=\"6 4\"" : "");
  for (int i = 0; i < count; i++) {
    const ArmResult *arm = find_arm(&rows[i], name);
    if (arm) fprintf(file, "%.1f,%.1f ", x_of(i, count), y_of(arm->random.flops / 1e12, most));
  }
  fputs("\"/>\n", file);
  for (int i = 0; i < count; i++) {
    const ArmResult *arm = find_arm(&rows[i], name);
    if (arm) point(file, arm, x_of(i, count), most, sizes_flops(rows[i].sizes), colour);
  }
  int x = LEFT + 10 + (index % 4) * 190, y = TOP - 22 + (index / 4) * 16;
  fprintf(file, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"3\"%s/>\n", x,
          y - 4, x + 24, y - 4, colour, peer ? " stroke-dasharray=\"6 4\"" : "");
  fprintf(file, "<text x=\"%d\" y=\"%d\">", x + 30, y);
  escaped(file, name);
  fputs("</text>\n", file);
}

void report_svg(FILE *file, const ReportHead *head, const Row *rows, int count) {
  double step = step_for(highest(rows, count) * 1.05), most = step;
  while (most < highest(rows, count) * 1.05) most += step;
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
          "font-size=\"12\" fill=\"#888\">\n<text x=\"%d\" y=\"20\" font-size=\"14\">",
          WIDTH, HEIGHT, LEFT);
  escaped(file, head->product);
  fprintf(file, ", %s to %s, ", head->operand, head->result);
  escaped(file, head->gpu);
  fputs("</text>\n", file);
  axes(file, rows, count, most, step);
  for (int i = 0; count > 0 && i < rows[0].narms; i++) line(file, rows, count, i, most);
  fputs("</svg>\n", file);
}
