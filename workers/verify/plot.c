/*
 * plot.c - how large the differences are, as an SVG picture: for each quarter of a decade two bars beside
 * each other, recorded against scored, and scored against scored again. The height is the share of tokens.
 */
#include "workers/verify/plot.h"

#include <math.h>

enum { WIDTH = 900, HEIGHT = 420, LEFT = 70, RIGHT = 20, TOP = 70, BOTTOM = 60 };
static const double PLOT_WIDTH = WIDTH - LEFT - RIGHT, PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;

static const struct {
    const char *colour, *what;
} kinds[] = {{"#2b6cb0", "recorded and scored now"}, {"#dd9a3c", "scored now and scored again"}};

static double share_of(const struct histogram *tally, size_t bar)
{
    return tally->count ? (double)tally->bars[bar] / (double)tally->count : 0;
}

static double highest_share(const struct report *all)
{
    double highest = 0;
    for (size_t i = 0; i < TALLY_BARS; i++)
        highest = fmax(highest, fmax(share_of(&all->differences, i), share_of(&all->again, i)));
    return highest > 0 ? highest : 1;
}

/* A round number of percent above it, for the axis. */
static double axis_end(double highest)
{
    static const double ends[] = {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (highest <= ends[i])
            return ends[i];
    return 1;
}

static void draw_axes(double end, FILE *out)
{
    for (int i = 0; i <= 5; i++) {
        double y = TOP + PLOT_HEIGHT * (1 - i / 5.0);
        fprintf(out, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>\n", LEFT, y, WIDTH - RIGHT, y);
        fprintf(out, "<text x='%d' y='%.1f' text-anchor='end'>%.3g %%</text>\n", LEFT - 8, y + 4, 100 * end * i / 5);
    }
    for (int bar = 1; bar <= TALLY_BARS; bar += TALLY_BARS_A_DECADE) {
        double x = LEFT + PLOT_WIDTH * bar / TALLY_BARS;
        fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='#999'/>\n", x, HEIGHT - BOTTOM, x,
                HEIGHT - BOTTOM + 5);
        fprintf(out, "<text x='%.1f' y='%d' text-anchor='middle'>1e%d</text>\n", x, HEIGHT - BOTTOM + 20,
                TALLY_FIRST_DECADE + (bar - 1) / TALLY_BARS_A_DECADE);
    }
    fprintf(out, "<text x='%d' y='%d' text-anchor='start'>less</text>\n", LEFT, HEIGHT - BOTTOM + 20);
    fprintf(out,
            "<text x='%d' y='%d' text-anchor='middle'>absolute difference of log-probabilities, "
            "nats</text>\n",
            LEFT + (int)PLOT_WIDTH / 2, HEIGHT - 12);
}

static void draw_bars(const struct histogram *tally, size_t kind, double end, FILE *out)
{
    double step = PLOT_WIDTH / TALLY_BARS, width = step * 0.42;
    for (size_t i = 0; i < TALLY_BARS; i++) {
        double height = PLOT_HEIGHT * share_of(tally, i) / end;
        if (tally->bars[i])
            fprintf(out,
                    "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='%s'><title>%llu "
                    "tokens</title></rect>\n",
                    LEFT + step * (double)i + step * 0.06 + (double)kind * width, TOP + PLOT_HEIGHT - height, width,
                    fmax(height, 0.7), kinds[kind].colour, (unsigned long long)tally->bars[i]);
    }
}

static void draw_legend(const struct histogram *tally, size_t kind, FILE *out)
{
    double y = 40 + 18 * (double)kind;
    fprintf(out, "<rect x='%d' y='%.1f' width='12' height='12' fill='%s'/>\n", LEFT, y - 10, kinds[kind].colour);
    fprintf(out, "<text x='%d' y='%.1f'>%s: mean %.3g, greatest %.3g</text>\n", LEFT + 18, y, kinds[kind].what,
            histogram_mean(tally), tally->max);
}

void verify_plot(const struct report *all, FILE *out)
{
    double end = axis_end(highest_share(all));
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
            "font-family='sans-serif' font-size='12' fill='#222'>\n<rect width='100%%' "
            "height='100%%' fill='white'/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(out, "<text x='%d' y='20' font-size='15'>%llu sampled tokens of %llu trajectories</text>\n", LEFT,
            (unsigned long long)all->differences.count, (unsigned long long)all->trajectories);
    draw_axes(end, out);
    const struct histogram *tallies[] = {&all->differences, &all->again};
    for (size_t i = 0; i < 2; i++) {
        if (tallies[i]->count == 0)
            continue;
        draw_bars(tallies[i], i, end, out);
        draw_legend(tallies[i], i, out);
    }
    fputs("</svg>\n", out);
}
