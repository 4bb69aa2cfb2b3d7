-- Standard errors that a true mean must have for a 95 % t interval to leave out 0 with a chance of 80 %.
--
-- Between two rows the one with fewer degrees of freedom counts, which asks for a little more and never for less:
-- `asof join int_detection_factors as f on df >= f.degrees_of_freedom`. The last row is the normal one.
--
-- grain: degrees of freedom
-- key: degrees_of_freedom
-- columns:
--   degrees_of_freedom  number, from 1 to infinity
--   detection_factor    number, 2.802 to 14.083
-- formula: t(0.975) + t(0.8). The chance is 80 % from 4 degrees of freedom on, and 77 % with 2, 73 % with 1.
-- source: Bloom (1995), Evaluation Review 19, 547-556
select
    multiples.degrees_of_freedom,
    cast(multiples.detection_factor as double) as detection_factor
from (
    values
    (1.0, 14.083), (2.0, 5.363), (3.0, 4.161), (4.0, 3.717), (5.0, 3.490),
    (6.0, 3.353), (7.0, 3.261), (8.0, 3.195), (9.0, 3.146), (10.0, 3.107),
    (11.0, 3.077), (12.0, 3.051), (13.0, 3.031), (14.0, 3.013), (15.0, 2.998),
    (16.0, 2.985), (17.0, 2.973), (18.0, 2.963), (19.0, 2.954), (20.0, 2.946),
    (21.0, 2.939), (22.0, 2.932), (23.0, 2.926), (24.0, 2.921), (25.0, 2.916),
    (26.0, 2.911), (27.0, 2.907), (28.0, 2.903), (29.0, 2.899), (30.0, 2.896),
    (40.0, 2.872), (60.0, 2.848), (120.0, 2.825), (cast('infinity' as double), 2.802)
) as multiples (degrees_of_freedom, detection_factor)
